/* Draws the charts, searches and sorts the nodes. Without it the tables and the picture of the chain stand alone. */
(function () {
  "use strict";

  const FLOOR = 1e-7; // what is smaller, zero as well, is drawn here
  const ROWS = 100; // of a table of nodes at first, and of each further step
  const MATCHES = 2000; // more matches than this are not marked in the chart

  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [];
  root.classList.add("js");

  // --- words, numbers, elements

  function said(code, values) {
    return data.texts[code].replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? values[name] : whole));
  }

  function number(value, digits) {
    if (value === null || value === undefined) return "";
    return typeof value === "string" ? value : String(Number(value.toPrecision(digits || 4)));
  }

  function decibel(value) {
    return typeof value === "number" ? value.toFixed(1) : number(value);
  }

  function percent(value) {
    return value ? number(100 * value, 3) + " %" : "";
  }

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  function colour(name) {
    return getComputedStyle(root)
      .getPropertyValue("--" + name)
      .trim();
  }

  function font(size) {
    return size + "px " + getComputedStyle(document.body).fontFamily;
  }

  // --- nodes, as the page carries them

  function indexed(column) {
    return column.at.map((at) => column.names[at]);
  }

  /** Names that begin like their models, or each like the one before it. */
  function named(column, models) {
    const names = [];
    indexed(column.rest).forEach((rest, at) => {
      const model = models ? models[at] : at ? names[at - 1] : "";
      names.push(model.slice(0, column.kept[at]) + rest);
    });
    return names;
  }

  function unpacked(packed) {
    const graph = Object.assign({}, packed);
    graph.count = packed.place.length;
    graph.op = indexed(packed.op);
    graph.node = named(packed.node);
    graph.candidate = named(packed.candidate, graph.node);
    graph.reference = named(packed.reference, graph.candidate);
    graph.shape = indexed(packed.shape);
    graph.isOff = new Set(packed.off);
    return graph;
  }

  /** Error over signal of a ratio in dB; null where it is not known. */
  function share(value) {
    if (value === "∞") return 0;
    return typeof value === "number" ? Math.pow(10, -value / 20) : null;
  }

  /** What came in with the inputs, over the signal: the whole error without the own one, by power. */
  function inheritedShare(graph, at) {
    if (graph.vendor) return null;
    const own = share(graph.own[at]);
    const total = share(graph.total[at]);
    return own === null || total === null ? null : Math.sqrt(Math.max(total * total - own * own, 0));
  }

  /** The same in dB. */
  function inherited(graph, at) {
    const rest = inheritedShare(graph, at);
    if (rest === null) return "";
    return rest > 0 ? decibel(-20 * Math.log10(rest)) : "∞";
  }

  function drawn(value) {
    return value === null ? null : Math.max(value, FLOOR);
  }

  // --- charts in general

  /** Draw when it comes near the window, and at the latest when the page is printed. */
  function lazily(box, make) {
    const entry = { box: box, plot: null, height: 0 };
    entry.draw = () => {
      if (entry.plot || !box.clientWidth) return;
      watcher.unobserve(box);
      make();
    };
    charts.push(entry);
    box.drawing = entry;
    watcher.observe(box);
    return entry;
  }

  const watcher = new IntersectionObserver(
    (seen) => seen.filter((one) => one.isIntersecting).forEach((one) => one.target.drawing.draw()),
    { rootMargin: "600px" },
  );

  function plot(entry, options, values) {
    entry.height = options.height;
    const common = {
      width: entry.box.clientWidth,
      legend: { show: false },
      padding: [14, 18, 0, 0],
    };
    entry.plot = new uPlot(Object.assign(common, options), values, entry.box);
    entry.plot.root.setAttribute("aria-hidden", "true");
    return entry.plot;
  }

  function axis(more) {
    const line = { stroke: () => colour("line"), width: 1 };
    return Object.assign(
      { stroke: () => colour("soft"), grid: line, ticks: line, font: font(11), labelFont: font(11), labelSize: 18 },
      more,
    );
  }

  /** Zero and the powers of ten among the places of an axis. */
  function ofTen(u, splits) {
    const isOne = (value) => value === 0 || (value > 0 && Number.isInteger(Number(Math.log10(value).toFixed(9))));
    return splits.map((value) => (isOne(value) ? value : null));
  }

  /** An axis with lines at the powers of ten alone. */
  function decades(more) {
    const line = { stroke: () => colour("line"), width: 1, filter: ofTen };
    return axis(Object.assign({ grid: line, ticks: line }, more));
  }

  function fitted() {
    charts.forEach((entry) => {
      if (entry.plot && entry.box.clientWidth) {
        entry.plot.setSize({ width: entry.box.clientWidth, height: entry.height });
      }
    });
  }

  function repainted() {
    charts.forEach((entry) => entry.plot && entry.plot.redraw(false));
  }

  /** A chart of `count` things that the arrow keys go through; `tell` says one in words, `show` marks it. */
  function explorable(box, count, tell, show) {
    let at = -1;
    box.setAttribute("role", "slider");
    box.setAttribute("tabindex", "0");
    box.setAttribute("aria-label", box.dataset.name + said("mark-stop") + " " + box.dataset.how);
    box.setAttribute("aria-valuemin", "1");
    box.setAttribute("aria-valuemax", String(count));
    function choose(next) {
      at = Math.min(Math.max(next, 0), count - 1);
      box.setAttribute("aria-valuenow", String(at + 1));
      box.setAttribute("aria-valuetext", tell(at));
      show(at);
    }
    const far = Math.max(2, Math.round(count / 20));
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: far, PageDown: -far };
    box.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key in steps) choose(at + steps[event.key]);
      else if (event.key === "Home") choose(0);
      else if (event.key === "End") choose(count - 1);
      else return;
      event.preventDefault();
    });
    box.setAttribute("aria-valuenow", "1");
    box.setAttribute("aria-valuetext", tell(0));
    return { choose: choose, at: () => at };
  }

  /** A line of text below a chart: what is pointed at or chosen, else how to use the chart. */
  function caption(box) {
    const line = element("p", { class: "told" }, box.dataset.how);
    box.after(line);
    return (text) => (line.textContent = text || box.dataset.how);
  }

  /** Tell what is under the pointer, and what was chosen before once it has gone. */
  function hovering(chart, show, back) {
    chart.over.addEventListener("mouseleave", back);
    return (u) => {
      if (u.cursor.left >= 0 && u.cursor.idx !== null && u.cursor.idx !== undefined) show(u.cursor.idx);
    };
  }

  function vertical(u, x, name, dash) {
    const at = u.valToPos(x, "x", true);
    if (at < u.bbox.left || at > u.bbox.left + u.bbox.width) return null;
    u.ctx.strokeStyle = colour(name);
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    u.ctx.setLineDash((dash || []).map((length) => length * devicePixelRatio));
    u.ctx.beginPath();
    u.ctx.moveTo(at, u.bbox.top);
    u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.setLineDash([]);
    return at;
  }

  function label(u, text, x, y, name, align) {
    u.ctx.font = font(11 * devicePixelRatio);
    u.ctx.fillStyle = colour(name);
    u.ctx.textAlign = align || "center";
    u.ctx.textBaseline = "alphabetic";
    u.ctx.fillText(text, x, y);
  }

  function fits(u, text, width) {
    u.ctx.font = font(11 * devicePixelRatio);
    return u.ctx.measureText(text).width < width - 4 * devicePixelRatio;
  }

  // --- the score along the stages

  function waterfall(box, fall) {
    const count = fall.stages.length;
    const tellLine = caption(box);
    let chosen = null;
    const bounds = [...fall.values, ...fall.lows, ...fall.highs].filter((value) => value !== null);
    const low = Math.min(...bounds);
    const high = Math.max(...bounds);
    const room = high > low ? (high - low) * 0.16 : Math.abs(high) * 0.02 || 1;

    function tell(at) {
      const where = said("score-at", { stage: fall.stages[at], score: fall.texts[at] });
      if (fall.lows[at] === null) return where;
      return where + " " + said("page-score-interval", { low: number(fall.lows[at]), high: number(fall.highs[at]) });
    }

    const entry = lazily(box, () => {
      const isNarrow = box.clientWidth < 90 * count;
      const stages = axis({
        splits: () => fall.stages.map((_, at) => at),
        values: (u, splits) => splits.map((at) => (isNarrow ? fall.stages[at] : fall.stages[at].replace("_", "_\n"))),
        grid: { show: false },
        rotate: isNarrow ? -90 : 0,
        size: isNarrow ? 120 : 44,
      });
      const chart = plot(
        entry,
        {
          height: isNarrow ? 320 : 240,
          padding: [22, 18, 0, 0],
          scales: { x: { time: false, range: [-0.5, count - 0.5] }, y: { range: [low - room, high + room] } },
          axes: [stages, axis({ size: 56 })],
          series: [{}, { paths: () => null, points: { show: false } }],
          cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
          hooks: { draw: [draw], setCursor: [(u) => hover(u)] },
        },
        [fall.stages.map((_, at) => at), fall.values],
      );
      const hover = hovering(
        chart,
        (at) => tellLine(tell(at)),
        () => tellLine(chosen === null ? "" : tell(chosen)),
      );
    });

    function draw(u) {
      const ratio = devicePixelRatio;
      const x = (at) => u.valToPos(at, "x", true);
      const y = (value) => u.valToPos(value, "y", true);
      const half = Math.min(26 * ratio, (x(1) - x(0)) / 3);
      u.ctx.save();
      segments(u, x);
      fall.values.forEach((value, at) => {
        if (at) {
          const before = fall.values[at - 1];
          u.ctx.fillStyle = colour(value < before === fall.lowerIsBetter ? "better" : "worse");
          u.ctx.fillRect(x(at) - half, Math.min(y(before), y(value)), 2 * half, Math.abs(y(before) - y(value)));
          stroke(u, "soft", 1, [3, 3], [x(at - 1), y(before), x(at) + half, y(before)]);
        }
        stroke(u, "ink", 2, [], [x(at) - half, y(value), x(at) + half, y(value)]);
        if (fall.lows[at] !== null) {
          const ends = [y(fall.lows[at]), y(fall.highs[at])];
          stroke(u, "ink", 1, [], [x(at), ends[0], x(at), ends[1]]);
          ends.forEach((end) => stroke(u, "ink", 1, [], [x(at) - 5 * ratio, end, x(at) + 5 * ratio, end]));
        }
        const ends = [value, fall.lows[at], fall.highs[at]].filter((one) => one !== null);
        const isFallen = at > 0 && value < fall.values[at - 1]; // its bar stands above, so the text goes below
        const place = isFallen ? y(Math.min(...ends)) + 14 * ratio : y(Math.max(...ends)) - 6 * ratio;
        const isNew = at === 0 || fall.texts[at] !== fall.texts[at - 1];
        if (isNew || fits(u, fall.texts[at], x(1) - x(0))) label(u, fall.texts[at], x(at), place, "ink");
        if (chosen === at) {
          u.ctx.strokeStyle = colour("accent");
          u.ctx.lineWidth = 2 * ratio;
          u.ctx.strokeRect(x(at) - half - 3 * ratio, u.bbox.top, 2 * half + 6 * ratio, u.bbox.height);
        }
      });
      u.ctx.restore();
    }

    /** Between the segments, and above each what it costs. */
    function segments(u, x) {
      fall.segments.forEach((segment, at) => {
        const cost = fall.costs[segment];
        if (at && fall.segments[at - 1] !== segment) stroke(u, "line", 1, [2, 4], edge(u, x(at - 0.5)));
        if (cost && fall.segments.lastIndexOf(segment) === at) {
          const first = fall.segments.indexOf(segment);
          const told = said("page-segment-cost", { segment: segment, loss: cost[0] });
          const middle = (x(first) + x(at)) / 2;
          if (fits(u, told, x(at + 1) - x(first))) label(u, told, middle, u.bbox.top - 8 * devicePixelRatio, "soft");
        }
      });
    }

    function edge(u, at) {
      return [at, u.bbox.top, at, u.bbox.top + u.bbox.height];
    }

    function stroke(u, name, width, dash, line) {
      u.ctx.strokeStyle = colour(name);
      u.ctx.lineWidth = width * devicePixelRatio;
      u.ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
      u.ctx.beginPath();
      u.ctx.moveTo(line[0], line[1]);
      u.ctx.lineTo(line[2], line[3]);
      u.ctx.stroke();
      u.ctx.setLineDash([]);
    }

    explorable(box, count, tell, (at) => {
      chosen = at;
      tellLine(tell(at));
      if (entry.plot) entry.plot.redraw(false);
    });
  }

  // --- the error along the graph

  function superscript(value) {
    const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    return String(value)
      .replace("-", "⁻")
      .replace(/\d/g, (digit) => digits[Number(digit)]);
  }

  function powers(u, splits) {
    return splits.map((value) => (value === null ? "" : "10" + superscript(Math.round(Math.log10(value)))));
  }

  /** The chart of a graph's nodes; `chosen` is called with the place of a node that was clicked or stepped to. */
  function errors(box, graph, readout, chosen) {
    const x = (at) => graph.place[at] + 1;
    const all = { min: x(0) - 0.5, max: x(graph.count - 1) + 0.5 };
    const total = graph.place.map((_, at) => {
      if (!graph.vendor) return drawn(share(graph.total[at]));
      return typeof graph.cosine[at] === "number" ? drawn(1 - graph.cosine[at]) : null;
    });
    const own = graph.place.map((_, at) => (graph.vendor ? null : drawn(share(graph.own[at]))));
    const before = graph.place.map((_, at) => drawn(inheritedShare(graph, at)));
    const firsts = graph.place.indexOf(graph.first);
    let found = [];
    let current = -1;

    const entry = lazily(box, () => {
      const line = { stroke: () => colour("total"), width: 1.5, spanGaps: true };
      const chart = plot(
        entry,
        {
          height: 300,
          scales: {
            x: { time: false, range: (u, min, max) => [min, max] },
            y: { distr: 3, range: (u, min, max) => (min === null ? [FLOOR, 1] : uPlot.rangeLog(min, max, 10, true)) },
          },
          axes: [
            axis({
              label: said("page-axis-node"),
              incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000],
              values: (u, splits) => splits.map(String),
              size: 34,
            }),
            decades({
              label: said(graph.vendor ? "page-axis-cosine" : "page-axis-error"),
              values: powers,
              size: 48,
            }),
          ],
          series: [
            {},
            {
              fill: () => colour("own"),
              stroke: () => colour("own"),
              width: 0,
              paths: uPlot.paths.bars({ size: [0.7, 30, 1] }),
              points: { show: false },
            },
            { stroke: () => colour("inherited"), width: 1.5, dash: [2, 3], spanGaps: true, points: { show: false } },
            Object.assign(line, { points: { show: graph.count <= 80, size: 6, fill: () => colour("total") } }),
          ],
          cursor: {
            drag: { x: true, y: false },
            points: { show: false },
            bind: { dblclick: () => () => zoom(all.min, all.max) },
          },
          hooks: { draw: [draw], setCursor: [(u) => hover(u)] },
        },
        [graph.place.map((_, at) => x(at)), own, before, total],
      );
      chart.setScale("x", all);
      const hover = hovering(
        chart,
        (at) => describe(readout, graph, at),
        () => describe(readout, graph, current),
      );
      chart.over.addEventListener("click", () => {
        if (chart.cursor.idx !== null && chart.select.width === 0) slider.choose(chart.cursor.idx);
      });
    });

    function draw(u) {
      const y = (at) => u.valToPos(total[at] === null ? own[at] : total[at], "y", true);
      const isShown = (at) => isWithin(u, at) && (total[at] ?? own[at]) !== null;
      u.ctx.save();
      if (firsts >= 0) {
        const at = vertical(u, x(firsts), "fail", [5, 4]);
        const isRight = at !== null && at > u.bbox.left + u.bbox.width / 2;
        const side = isRight ? "right" : "left";
        const gap = (isRight ? -5 : 5) * devicePixelRatio;
        if (at !== null)
          label(u, said("page-first-node"), at + gap, u.bbox.top + 11 * devicePixelRatio, "fail", side);
      }
      graph.place.forEach((place, at) => {
        if (graph.isOff.has(place) && isShown(at)) diamond(u, u.valToPos(x(at), "x", true), y(at));
      });
      u.ctx.fillStyle = colour("accent");
      if (found.length <= MATCHES) {
        const size = 9 * devicePixelRatio;
        found
          .filter((at) => isWithin(u, at))
          .forEach((at) => {
            u.ctx.fillRect(u.valToPos(x(at), "x", true) - 1, u.bbox.top + u.bbox.height - size, 3, size);
          });
      }
      if (current >= 0) vertical(u, x(current), "accent");
      u.ctx.restore();
    }

    function isWithin(u, at) {
      return x(at) >= u.scales.x.min && x(at) <= u.scales.x.max;
    }

    function diamond(u, x, y) {
      const size = 5 * devicePixelRatio;
      u.ctx.fillStyle = colour("fail");
      u.ctx.strokeStyle = colour("paper");
      u.ctx.lineWidth = devicePixelRatio;
      u.ctx.beginPath();
      u.ctx.moveTo(x, y - size);
      u.ctx.lineTo(x + size, y);
      u.ctx.lineTo(x, y + size);
      u.ctx.lineTo(x - size, y);
      u.ctx.closePath();
      u.ctx.fill();
      u.ctx.stroke();
    }

    function zoom(min, max) {
      const width = Math.min(max - min, all.max - all.min);
      const start = Math.min(Math.max(min, all.min), all.max - width);
      if (entry.plot) entry.plot.setScale("x", { min: start, max: start + width });
    }

    function zoomBy(factor) {
      if (!entry.plot) return;
      const shown = entry.plot.scales.x;
      const middle = current >= 0 && isWithin(entry.plot, current) ? x(current) : (shown.min + shown.max) / 2;
      const half = Math.max(2, ((shown.max - shown.min) * factor) / 2);
      zoom(middle - half, middle + half);
    }

    const zooms = { in: () => zoomBy(0.5), out: () => zoomBy(2), all: () => zoom(all.min, all.max) };
    const keys = { "+": zooms.in, "=": zooms.in, "-": zooms.out, 0: zooms.all, Escape: zooms.all };
    box.addEventListener("keydown", (event) => {
      if (event.key in keys && !event.ctrlKey && !event.metaKey) keys[event.key]();
    });
    box
      .closest("figure")
      .querySelectorAll("[data-zoom]")
      .forEach((button) => {
        button.addEventListener("click", () => zooms[button.dataset.zoom]());
      });

    const slider = explorable(
      box,
      graph.count,
      (at) => sentence(graph, at),
      (at) => {
        current = at;
        describe(readout, graph, at);
        if (entry.plot) {
          const half = (entry.plot.scales.x.max - entry.plot.scales.x.min) / 2;
          if (isWithin(entry.plot, at)) entry.plot.redraw(false);
          else zoom(x(at) - half, x(at) + half);
        }
        chosen(at);
      },
    );
    slider.mark = (places) => {
      found = places;
      if (entry.plot) entry.plot.redraw(false);
    };
    return slider;
  }

  function sentence(graph, at) {
    const name = [graph.op[at], graph.node[at]].filter(Boolean).join(" ");
    const numbers = graph.vendor
      ? [[said("column-cosine"), number(graph.cosine[at], 6)]]
      : [
          [said("column-own"), decibel(graph.own[at])],
          [said("column-total"), decibel(graph.total[at])],
        ];
    return [name, ...numbers.filter((pair) => pair[1]).map((pair) => pair.join(" "))].join(said("mark-comma"));
  }

  /** Everything that is known of a node. */
  function describe(readout, graph, at) {
    readout.replaceChildren();
    if (at < 0 || at >= graph.count) return;
    const steps = (value) => (value === null ? "" : said("mark-comma") + said("page-steps", { steps: number(value, 3) }));
    const add = (code, ...values) => {
      if (values[0] !== "")
        readout.append(element("div", null, element("dt", null, said(code)), element("dd", null, ...values)));
    };
    const code = (name) => element("code", null, name);
    add("column-node", graph.op[at] + " ", code(graph.node[at]));
    if (graph.reference[at] === graph.candidate[at]) add("column-tensor", code(graph.candidate[at]));
    else add("column-tensor", code(graph.reference[at]), " → ", code(graph.candidate[at]));
    add("column-shape", graph.shape[at]);
    if (graph.vendor) {
      add("column-cosine", number(graph.cosine[at], 6));
      return;
    }
    add("column-own", decibel(graph.own[at]), steps(graph.ownSteps[at]));
    add("page-inherited", inherited(graph, at));
    add("column-total", decibel(graph.total[at]), steps(graph.totalSteps[at]));
    add("column-excess", number(graph.excess[at], 3));
    add("column-clipped", percent(graph.clipped[at]));
    if (graph.channels[at].length) add("column-channels", channels(graph, at));
  }

  function channels(graph, at) {
    const excesses = graph.excesses[graph.place[at]] || [];
    const strip = element("span", { class: "strip" });
    graph.channels[at].forEach((channel, index) => {
      const excess = excesses[index];
      const look = excess === undefined ? "channel" : "channel level" + levelOf(excess);
      const times = excess === undefined ? [] : [element("small", null, "×" + number(excess, 3))];
      strip.append(element("span", { class: look }, String(channel), ...times));
    });
    return strip;
  }

  function levelOf(excess) {
    return data.levels.filter((bound) => !(Number(excess) <= bound)).length;
  }

  /** Every channel of a node as a stripe, where they are known. */
  function stripes(box, packed) {
    box.replaceChildren();
    if (!packed) return;
    const values = [...packed].map((letter) => {
      const at = data.strip.letters.indexOf(letter);
      return at < 0 ? "NaN" : Math.pow(10, (at - data.strip.zero) / data.strip.steps);
    });
    const band = element("div", { class: "band" });
    values.forEach((value, at) => {
      const level = levelOf(value);
      const last = band.lastChild;
      if (at && levelOf(values[at - 1]) === level) last.style.flexGrow = String(Number(last.style.flexGrow) + 1);
      else band.append(element("i", { class: "level" + level }));
      if (band.lastChild !== last) band.lastChild.style.flexGrow = "1";
    });
    const here = element("b", { hidden: "" });
    const strip = element("div", {
      class: "stripes",
      "data-name": said("page-channel-strip"),
      "data-how": said("page-channel-strip-how"),
    });
    strip.append(band, here);
    box.append(element("p", { class: "soft" }, said("page-channel-strip")), strip);
    const tellLine = caption(strip);
    const tell = (at) => said("page-channel", { channel: at, excess: number(values[at], 2) });
    let chosen = null;
    const show = (at) => {
      here.hidden = at === null;
      if (at !== null) here.style.left = (100 * (at + 0.5)) / values.length + "%";
      tellLine(at === null ? "" : tell(at));
    };
    const slider = explorable(strip, values.length, tell, (at) => show((chosen = at)));
    const under = (event) => {
      const place = strip.getBoundingClientRect();
      const at = Math.floor(((event.clientX - place.left) / place.width) * values.length);
      return Math.min(Math.max(at, 0), values.length - 1);
    };
    strip.addEventListener("mousemove", (event) => show(under(event)));
    strip.addEventListener("mouseleave", () => show(chosen));
    strip.addEventListener("click", (event) => slider.choose(under(event)));
  }

  // --- the values of a tensor

  function histogram(box, section, spreads) {
    const select = section.querySelector("[data-spread]");
    const bins = section.querySelector("[data-bins]");
    const every = section.querySelector(".every");
    const tellLine = caption(box);
    const edgesOf = (one) => {
      const count = one.reference.length;
      return Array.from({ length: count + 1 }, (_, at) => one.low + ((one.high - one.low) * at) / count);
    };
    let shown = spreads[0];
    let edges = edgesOf(shown);
    let chosen = null;

    function between(at) {
      return number(edges[at]) + " … " + number(edges[at + 1]);
    }

    function tell(at) {
      const counts = [
        said("page-reference") + " " + shown.reference[at],
        said("page-candidate") + " " + shown.candidate[at],
      ];
      return [between(at), ...counts].join(said("mark-comma"));
    }

    function columns() {
      const last = shown.reference.length - 1;
      return [edges, [...shown.reference, shown.reference[last]], [...shown.candidate, shown.candidate[last]]];
    }

    const entry = lazily(box, () => {
      const stepped = uPlot.paths.stepped({ align: 1 });
      const chart = plot(
        entry,
        {
          height: 230,
          scales: { x: { time: false }, y: { distr: 4, asinh: 1, range: (u, min, max) => [0, (max || 1) * 1.6] } },
          axes: [
            axis({ label: said("page-axis-value"), size: 34 }),
            decades({ label: said("page-axis-count"), size: 62, filter: ofTen }),
          ],
          series: [
            {},
            {
              paths: stepped,
              stroke: () => colour("reference"),
              fill: () => colour("reference-fill"),
              width: 1.5,
              points: { show: false },
            },
            { paths: stepped, stroke: () => colour("candidate"), width: 2, dash: [6, 3], points: { show: false } },
          ],
          cursor: { y: false, drag: { x: true, y: false }, points: { show: false } },
          hooks: { draw: [draw], setCursor: [(u) => hover(u)] },
        },
        columns(),
      );
      const inside = (at) => Math.min(at, shown.reference.length - 1);
      const hover = hovering(
        chart,
        (at) => tellLine(tell(inside(at))),
        () => tellLine(chosen === null ? "" : tell(chosen)),
      );
    });

    function draw(u) {
      u.ctx.save();
      (shown.clip || []).forEach((bound) => {
        if (typeof bound === "number") vertical(u, bound, "clip", [2, 3]);
      });
      if (chosen !== null) vertical(u, (edges[chosen] + edges[chosen + 1]) / 2, "accent");
      u.ctx.restore();
    }

    function numbers() {
      bins.querySelectorAll("div").forEach((old) => old.remove());
      if (!bins.open) return;
      const head = ["page-bin", "page-reference", "page-candidate"].map((code) =>
        element("th", { scope: "col" }, said(code)),
      );
      const rows = shown.reference.map((count, at) => {
        const cells = [count, shown.candidate[at]].map((one) => element("td", { class: "number" }, String(one)));
        return element("tr", null, element("th", { scope: "row" }, between(at)), ...cells);
      });
      const table = element(
        "table",
        null,
        element("thead", null, element("tr", null, ...head)),
        element("tbody", null, ...rows),
      );
      const name = said("page-bins-of", { tensor: shown.tensor });
      bins.append(element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": name }, table));
    }

    function change(at) {
      shown = spreads[at];
      edges = edgesOf(shown);
      chosen = null;
      tellLine("");
      sampled();
      if (entry.plot) entry.plot.setData(columns());
      numbers();
    }

    function sampled() {
      every.hidden = shown.every === 1;
      every.textContent = said("page-every", { every: shown.every });
    }

    sampled();
    select.addEventListener("change", () => change(Number(select.value)));
    bins.addEventListener("toggle", numbers);
    explorable(box, spreads[0].reference.length, tell, (at) => {
      chosen = Math.min(at, shown.reference.length - 1);
      tellLine(tell(chosen));
      if (entry.plot) entry.plot.redraw(false);
    });
    /** Show a tensor where its values were counted. */
    return (tensor) => {
      const at = spreads.findIndex((one) => one.tensor === tensor);
      if (at < 0 || spreads[at] === shown) return;
      select.value = String(at);
      change(at);
    };
  }

  // --- the table of nodes

  function nodes(section, graph, choose, mark) {
    const search = section.querySelector("input");
    const hits = section.querySelector(".hits");
    const body = section.querySelector("tbody");
    const more = section.querySelector(".more");
    const heads = [...section.querySelectorAll("th[data-sort]")];
    const haystack = graph.node.map((name, at) =>
      [graph.op[at], name, graph.candidate[at], graph.reference[at]].join("\n").toLowerCase(),
    );
    const columns = graph.vendor ? ["cosine"] : ["own", "total", "excess", "clipped"];
    const forms = {
      own: decibel,
      total: decibel,
      excess: (value) => number(value, 3),
      clipped: percent,
      cosine: (value) => number(value, 6),
    };
    let key = "rank";
    let direction = 1;
    let shown = ROWS;
    let picked = -1;
    let found = [];

    heads.forEach((head) => {
      const button = element("button", { type: "button", class: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        direction = key === head.dataset.sort ? -direction : 1;
        key = head.dataset.sort;
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
        list();
      });
    });

    function comparable(value) {
      const extremes = { "∞": Infinity, "-∞": -Infinity, NaN: -Infinity };
      if (value === null || value === undefined) return Infinity;
      return value in extremes ? extremes[value] : value;
    }

    function order(a, b) {
      const left = comparable(graph[key][a]);
      const right = comparable(graph[key][b]);
      if (left === right) return graph.rank[a] - graph.rank[b];
      return left < right ? -direction : direction;
    }

    function list() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = [];
      haystack.forEach((text, at) => {
        if (words.every((word) => text.includes(word))) found.push(at);
      });
      found.sort(order);
      hits.textContent = said("page-hits", { count: found.length, total: graph.count });
      mark(words.length ? found : []);
      render();
    }

    function render() {
      body.replaceChildren(...found.slice(0, shown).map(row));
      more.hidden = found.length <= shown;
      more.textContent = said("page-more", { count: Math.min(ROWS, found.length - shown) });
    }

    function row(at) {
      const cell = (text) => element("td", { class: "number" }, text);
      const pick = element("button", { type: "button", class: "pick" }, element("code", null, graph.node[at]));
      if (at === picked) pick.setAttribute("aria-current", "true");
      pick.addEventListener("click", () => choose(at));
      const name = element("td", null, pick);
      if (graph.candidate[at] !== graph.node[at])
        name.append(element("small", { class: "tensor" }, graph.candidate[at]));
      const cells = [cell(String(graph.place[at] + 1)), element("td", null, graph.op[at]), name];
      columns.forEach((column) => cells.push(cell(forms[column](graph[column][at]))));
      if (!graph.vendor) cells.push(element("td", { class: "strip" }, ...channels(graph, at).childNodes));
      const made = element("tr", { class: graph.isOff.has(graph.place[at]) ? "off" : null }, ...cells);
      made.classList.toggle("picked", at === picked);
      return made;
    }

    search.addEventListener("input", () => {
      shown = ROWS;
      list();
    });
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && found.length) choose(found[0]);
      if (event.key !== "Escape") return;
      event.preventDefault();
      search.value = "";
      list();
    });
    more.addEventListener("click", () => {
      const next = shown;
      shown += ROWS;
      render();
      body.rows[next].querySelector("button").focus();
    });
    list();
    return (at) => {
      picked = at;
      body.querySelectorAll("tr").forEach((one, index) => {
        const is = found[index] === at;
        one.classList.toggle("picked", is);
        const button = one.querySelector(".pick");
        if (is) button.setAttribute("aria-current", "true");
        else button.removeAttribute("aria-current");
      });
    };
  }

  // --- everything together

  document.querySelectorAll(".chart.waterfall").forEach((box) => waterfall(box, data.waterfalls[box.dataset.chart]));

  document.querySelectorAll("[data-graph]").forEach((section) => {
    const graph = unpacked(data.graphs[section.dataset.graph]);
    if (!graph.count) return;
    const readout = section.querySelector(".readout");
    const spread = section.querySelector(".chart.histogram");
    const showTensor = spread ? histogram(spread, section, graph.spreads) : () => {};
    let pick = () => {};
    const slider = errors(section.querySelector(".chart.errors"), graph, readout, (at) => {
      pick(at);
      showTensor(graph.candidate[at]);
      stripes(section.querySelector(".channels"), (graph.strips || {})[graph.place[at]]);
    });
    pick = nodes(section.querySelector(".nodes"), graph, slider.choose, slider.mark);
    const start = graph.place.indexOf(graph.first);
    slider.choose(start >= 0 ? start : graph.rank.indexOf(0));
  });

  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const searches = [...document.querySelectorAll(".search input")];
    const near = searches.find((one) => one.getBoundingClientRect().bottom > 0) || searches[0];
    if (!near) return;
    event.preventDefault();
    near.focus();
    near.scrollIntoView({ block: "center" });
  });

  const print = matchMedia("print");
  function printing(isPrinting) {
    root.classList.toggle("printing", isPrinting);
    charts.forEach((entry) => entry.draw());
    fitted();
    repainted();
  }
  print.addEventListener("change", () => printing(print.matches));
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repainted);
  new ResizeObserver(fitted).observe(document.querySelector("main"));
})();

"""The worker that runs PyTorch modules and TorchScript; see backends/foreign.py for the protocol.

Standard library, numpy and torch only, and Python 3.8: it runs under the user's own interpreter.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pickle
import sys
import weakref
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple  # noqa: UP035

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and PYTHONSAFEPATH leave it out

from worker_protocol import Failure, Infer, Trace, reason, serve  # type: ignore[import-not-found]

SEED = 0
UNNAMED_OUTPUT = "output"
#: Floating types that numpy has as well; others are sent as float32, which holds them exactly.
SHARED_FLOATS = ("torch.float16", "torch.float32", "torch.float64")
#: The vendor's package for quantisation-aware training (toolchain facts §10).
PLUGIN = "horizon_plugin_pytorch"
SHOWN_TYPES = 3

# What torch gives has no types here: the worker's stack is not ours.
Torch = Any
Module = Any
Value = Any

Inputs = List[Dict[str, Any]]  # noqa: UP006
#: What each tapped module returned, call by call, flattened.
Recorded = Dict[str, List[List[Tuple[str, Any]]]]  # noqa: UP006


def open_artifact(request: dict[str, Any], taps: Sequence[str]) -> tuple[dict[str, Any], Infer, Trace]:
    """Load a module in eval mode, on its device, with everything off that makes numbers vary."""
    torch = importlib.import_module("torch")
    settle(torch, request)
    device = device_of(torch, request["device"])
    scripted = request.get("path")
    module = load_script(torch, scripted, device) if scripted else load_module(torch, request)
    module = module.to(device).eval()
    level = ", ".join(("torchscript" if scripted else "eager", *hold_ranges(module)))
    inputs = script_inputs(module) if scripted else module_inputs(module)
    if taps and scripted:
        raise Failure("tool", "torchscript-taps", taps=list(taps))
    recorded = tap(torch, module, taps)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    answer = {
        "inputs": inputs,
        "provider": f"{device} {name}".strip(),
        "level": level,
        "threads": torch.get_num_threads(),
        "modules": [[name, type(inner).__name__] for name, inner in named_modules(torch, module)],
    }

    def run(feeds: dict[str, Any]) -> Value:
        given = {key: torch.from_numpy(feed).to(device) for key, feed in feeds.items()}
        torch.manual_seed(SEED)
        with torch.no_grad():
            return call(module, inputs, given)

    def infer(feeds: dict[str, Any]) -> Mapping[str, Any]:
        for calls in recorded.values():
            calls.clear()
        tensors = [*flat(torch, run(feeds), "")]
        silent = [name for name, calls in recorded.items() if not calls]
        if silent:
            raise Failure("tool", "torch-tap-silent", taps=silent)
        tensors.extend(entry for calls in recorded.values() for entries in calls for entry in entries)
        outputs: dict[str, Any] = {}
        for key, array in tensors:
            if key in outputs:
                raise Failure("tool", "torch-output-twice", output=key)
            outputs[key] = array
        return outputs

    def trace(feeds: dict[str, Any]) -> list[dict[str, Any]]:
        return traced(torch, module, lambda: run(feeds))

    return answer, infer, trace


def settle(torch: Torch, request: Mapping[str, Any]) -> None:
    """Threads as asked for; TF32, cuDNN's search and random numbers held still."""
    torch.set_num_threads(request["threads"])
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


def device_of(torch: Torch, name: str) -> Value:
    """The device, proven by a tensor on it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise Failure("tool", "torch-device", device=name, reason=reason(error)) from error
    return device


def load_script(torch: Torch, path: str, device: Value) -> Module:
    """A TorchScript file."""
    try:
        return torch.jit.load(path, map_location=device)
    except (RuntimeError, ValueError) as error:
        raise Failure("refused", "torchscript-refused", path=path, reason=reason(error)) from error


def load_module(torch: Torch, request: Mapping[str, Any]) -> Module:
    """What `module:function` returns, with the weights loaded into it."""
    sys.path[:0] = request["search_path"]
    target, _, function = request["load"].partition(":")
    try:
        made = getattr(importlib.import_module(target), function)()
    except (Exception, SystemExit) as error:  # all of this is the user's code
        raise Failure("artifact", "torch-load-raised", load=request["load"], reason=reason(error)) from error
    if not isinstance(made, torch.nn.Module):
        raise Failure("artifact", "torch-load-type", load=request["load"], found=type(made).__name__)
    if request.get("weights"):
        load_weights(torch, made, request["weights"])
    return made


def load_weights(torch: Torch, module: Module, path: str) -> None:
    """A state dict, or a checkpoint with one under `state_dict`; every key must have its counterpart."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise Failure("artifact", "torch-weights-pickled", path=path, reason=reason(error)) from error
    except (RuntimeError, EOFError, OSError, ValueError) as error:
        raise Failure("artifact", "torch-weights-damaged", path=path, reason=reason(error)) from error
    if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
        state = state["state_dict"]
    if not isinstance(state, Mapping):
        raise Failure("artifact", "torch-weights-damaged", path=path, reason=type(state).__name__)
    try:
        keys = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        raise Failure("artifact", "torch-weights-shapes", path=path, mismatches=lines[1:] or lines) from error
    if keys.missing_keys or keys.unexpected_keys:
        raise Failure(
            *("artifact", "torch-weights-keys"),
            path=path,
            missing=list(keys.missing_keys) or ["-"],
            unexpected=list(keys.unexpected_keys) or ["-"],
        )


def hold_ranges(module: Module) -> tuple[str, ...]:
    """Put a network of the plugin into VALIDATION, as the vendor compares it (toolchain facts §10): in other states its
    ranges follow the inputs, or nothing is quantised. What was done; nothing for other networks."""
    found = plugin_types(module)
    if not found:
        return ()
    try:
        quantization = importlib.import_module(PLUGIN + ".quantization")
        hold, state = quantization.set_fake_quantize, quantization.FakeQuantState.VALIDATION
    except (ImportError, AttributeError) as error:
        version = str(getattr(sys.modules.get(PLUGIN), "__version__", "-"))
        shown = found[:SHOWN_TYPES]
        raise Failure("tool", "torch-fake-quant", found=shown, version=version, reason=reason(error)) from error
    hold(module, state)
    return ("fake-quant validation",)


def plugin_types(module: Module) -> list[str]:
    """The names of the plugin's types in a network, each once."""
    kinds = {type(inner) for inner in module.modules()}
    return sorted(kind.__name__ for kind in kinds if is_plugins(kind))


def is_plugins(kind: type) -> bool:
    """Whether a type is the plugin's or derives from one of its own."""
    return any(base.__module__.partition(".")[0] == PLUGIN for base in kind.__mro__)


def plain(torch: Torch, tensor: Value) -> Value:
    """A tensor of the plugin as one of torch, its numbers in full: its own type refuses most of what is asked here."""
    return tensor.dequantize().as_subclass(torch.Tensor) if is_plugins(type(tensor)) else tensor


def plugin_version() -> dict[str, str]:
    """The plugin's version by name where it is installed; it is not imported for this."""
    from importlib import metadata

    try:
        return {PLUGIN: metadata.version(PLUGIN)}
    except metadata.PackageNotFoundError:
        return {}


def module_inputs(module: Module) -> Inputs:
    """The parameters of `forward`; those with a default may stay away."""
    inputs: Inputs = []
    for parameter in inspect.signature(module.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise Failure("artifact", "torch-inputs-unnamed", parameter=parameter.name)
        if parameter.kind is not parameter.VAR_KEYWORD:
            optional = parameter.default is not parameter.empty
            positional = parameter.kind is not parameter.KEYWORD_ONLY
            inputs.append({"name": parameter.name, "optional": optional, "positional": positional})
    return inputs


def script_inputs(module: Module) -> Inputs:
    """The arguments of a script's `forward`, without itself."""
    arguments = module.forward.schema.arguments[1:]
    return [{"name": a.name, "optional": a.has_default_value(), "positional": not a.kwarg_only} for a in arguments]


def call(module: Module, inputs: Inputs, given: Mapping[str, Any]) -> Value:
    """Required inputs by position, because their names may be for positions only; the rest by name."""
    places = [entry["name"] for entry in inputs if entry["positional"] and not entry["optional"]]
    named = {key: tensor for key, tensor in given.items() if key not in places}
    return module(*(given[name] for name in places), **named)


def flat(torch: Torch, value: Value, prefix: str) -> Iterator[tuple[str, Any]]:
    """The tensors of a result as numpy arrays, by the names of `leaves`."""
    for name, tensor in leaves(torch, value, prefix):
        yield name, array_of(torch, tensor)


def leaves(torch: Torch, value: Value, prefix: str) -> Iterator[tuple[str, Any]]:
    """The tensors of a result: `output`, `output.0`, or the keys of a dict, nested with dots."""
    if dataclasses.is_dataclass(value) and not isinstance(value, Mapping):
        value = vars(value)
    if isinstance(value, torch.Tensor):
        yield prefix or UNNAMED_OUTPUT, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(torch, item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from leaves(torch, item, f"{prefix or UNNAMED_OUTPUT}.{position}")
    elif isinstance(value, (bool, int, float)):
        yield prefix or UNNAMED_OUTPUT, torch.tensor(value)
    elif value is not None:
        raise Failure("tool", "torch-output-type", output=prefix or UNNAMED_OUTPUT, found=type(value).__name__)


def array_of(torch: Torch, tensor: Value) -> Value:
    """A copy in host memory, in a type that numpy has."""
    tensor = plain(torch, tensor).detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_floating_point() and str(tensor.dtype) not in SHARED_FLOATS:
        tensor = tensor.float()
    return tensor.cpu().contiguous().clone().numpy()


def tap(torch: Torch, module: Module, names: Sequence[str]) -> Recorded:
    """Record what the named modules return, at once, because a later operator may work in place.

    The second call of a module within one forward is `name@2`, and so on.
    """
    modules = dict(module.named_modules())
    unknown = [name for name in names if not name or name not in modules]
    if unknown:
        raise Failure("tool", "torch-tap-unknown", taps=unknown)

    def hook(name: str) -> Callable[[Any, Any, Any], None]:
        def keep(_module: Module, _arguments: Value, result: Value) -> None:
            calls = recorded[name]
            calls.append([*flat(torch, result, f"{name}@{len(calls) + 1}" if calls else name)])

        return keep

    recorded: Recorded = {name: [] for name in names}
    for name in recorded:
        modules[name].register_forward_hook(hook(name))
    return recorded


def named_modules(torch: Torch, module: Module) -> list[tuple[str, Module]]:
    """All modules inside that can be tapped, which scripted ones cannot; of several names a module has its first."""
    scripted = torch.jit.ScriptModule
    return [(name, inner) for name, inner in module.named_modules() if name and not isinstance(inner, scripted)]


class Journal:
    """Which floating tensors one run gives, in order, named as taps and outputs are; not the tensors themselves.

    A module that hands on what another returned, unchanged, has the `same` tensor.
    """

    def __init__(self, torch: Torch) -> None:
        self._torch = torch
        self._counts: dict[str, int] = {}
        self._known: dict[int, tuple[Any, int, str]] = {}
        self.calls: list[dict[str, Any]] = []

    def returned(self, module: str, result: Value) -> None:
        """A module, or the network itself under the name "", returned something; what cannot be tapped is left out."""
        self._counts[module] = self._counts.get(module, 0) + 1
        prefix = module if self._counts[module] == 1 else f"{module}@{self._counts[module]}"
        try:
            found = [*leaves(self._torch, result, prefix)]
        except Failure:
            return
        for name, tensor in found:
            own = plain(self._torch, tensor)
            if own.is_floating_point():
                same = self._same(name, tensor, own._version)
                self.calls.append({"tensor": name, "module": module, "size": own.numel(), "same": same})

    def _same(self, name: str, tensor: Value, version: int) -> str:
        """The first name of this very tensor with these very numbers, or nothing."""
        alive, known, first = self._known.get(id(tensor), (lambda: None, 0, ""))
        if alive() is tensor and version == known:
            return first
        self._known[id(tensor)] = (weakref.ref(tensor), version, name)
        return ""


def traced(torch: Torch, module: Module, run: Callable[[], Value]) -> list[dict[str, Any]]:
    """What modules and network return in one run."""
    journal = Journal(torch)

    def hook(name: str) -> Callable[[Any, Any, Any], None]:
        return lambda _module, _arguments, result: journal.returned(name, result)

    handles = [inner.register_forward_hook(hook(name)) for name, inner in named_modules(torch, module)]
    try:
        result = run()
    finally:
        for handle in handles:
            handle.remove()
    journal.returned("", result)
    return journal.calls


if __name__ == "__main__":
    sys.exit(serve(["torch"], open_artifact, plugin_version()))

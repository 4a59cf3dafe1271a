"""The Chinese catalogue: one sentence a code, with the parameters of the English one."""

CHINESE: dict[str, str] = {
    # --- bundles
    "archive-unreadable": "无法读取 {path}：{reason}",
    "archive-damaged": "{path} 不是完整的归档：{reason}；请重新获取",
    "archive-entries": "{path} 有 {found} 个文件，而 driftgate 的归档最多 {limit} 个；它不是 driftgate 生成的",
    "archive-too-large": "{path} 解包后会有 {bytes} 字节，超过 {limit_bytes}；没有打开",
    "archive-name": "{path} 中有文件“{name}”，这不是目录内的名称；它不是 driftgate 生成的",
    "archive-kind": "{path}：“{name}”是链接、设备文件、加密文件或以其他方式压缩；它不是 driftgate 生成的",
    "archive-twice": "{path} 中“{name}”出现两次；它不是 driftgate 生成的",
    "archive-longer": "{path}：“{name}”的内容多于其所记的大小；没有打开",
    "archive-shorter": "{path}：“{name}”的内容少于其所记的大小；请重新获取",
    "bundle-no-manifest": "{path} 中没有证据包的 {wanted}；请给出 driftgate 写出的 bundle.zip，或其解包后的目录",
    "bundle-changed": "{path}：“{name}”与清单所记不符：写出后被改动过；请重新获取证据包",
    "bundle-other-files": "{path} 与其清单所列的文件不同：{names}；请重新获取证据包",
    "bundle-judged-other": "{path}：由事实数据和策略得出的判定与其中所记的不同；证据包由其他版本生成，或被改动过",
    "bundle-confidential": "未放入：仅在 include-models 时放入",
    "bundle-holds-secret": "未放入：其中含有环境中的机密",
    "bundle-unreadable": "无法读取：{reason}",
    "bundle-for-size": "因证据包大小而略去",
    "bundle-name-taken": "已略去：其名称已被另一个文件占用",
    "bundle-too-large": "最小的证据包也有 {bytes} 字节，超过 {limit_bytes}；请调大证据包的大小上限",
    "bundle-none": "没有证据包：连最小的也无法写入 {path}；请清理空间，再运行 driftgate bundle",
    "bundle-written": "证据包 {path}，SHA-256 {sha256}",
    "bundle-full": "含模型的证据包留在本机：{path}，SHA-256 {sha256}",
    "bundle-smaller": "证据包比完整的小；略去了：{roles}",
    "bundle-failed": "没有证据包：{reason}",
    "bundle-stateful": "网络带有状态：其样本是序列，因此没有哪一个样本能单独重现失败",
    "bundle-no-link": "没有两个阶段之间的环节失败，因此没有可重新运行的环节；失败之处见报告",
    "bundle-no-stages": "本机没有失败环节的阶段：{reason}",
    "bundle-other-plan": (
        "{path}：配置为 {subject} {target} 生成的计划与运行过的不同；请检出报告所属的提交，或重新运行 driftgate check"
    ),
    "bundle-of-shard": "{path} 是分片，尚未判定；请先运行 driftgate report",
    "bundle-title": "driftgate 证据包",
    "bundle-intro": "什么失败、证据是什么、如何在别处重现。向厂商支持提单时：附上本页，以及下面列出的文件。",
    "bundle-evidence": "证据",
    "bundle-wanted": "厂商要求提供的内容",
    "bundle-column-what": "文件",
    "bundle-column-file": "位置或获取方式",
    "bundle-column-bytes": "字节",
    "bundle-look": "查看与重现",
    "bundle-explain": "相同的发现",
    "bundle-report": "相同的表格和页面",
    "bundle-replay": "重新运行失败的环节",
    "bundle-verified": (
        "MANIFEST.json 记有每个文件的大小和 SHA-256；各命令先核对它们，不符的一律不打开。判定在 results.json 和 "
        "facts.npz 中。"
    ),
    "bundle-withheld": "未包含的内容",
    "bundle-sacrificed": "因大小而略去：",
    "keep-model": "阶段 {stage} 的模型",
    "keep-log": "hb_compile.log 日志",
    "keep-quant-config": "quant_config（YAML 或 JSON）",
    "keep-input": "该样本的 input.npy",
    "keep-runtime-input": "同一输入，按 input_type_rt 的形式",
    "keep-board-input": "板端输入",
    "keep-infer-output": "hbm_infer 在 x86 上的输出",
    "keep-board-output": "hrt_model_exec 在板卡上的输出",
    "keep-included": "已包含",
    "keep-withheld": "未放入",
    "keep-missing": "缺少",
    "keep-tuning": "{stage}：厂商在此不要求提供任何内容：校准带来的损失不是一致性问题，应通过调优解决",
    "keep-nothing": "{stage}：厂商在此不要求提供任何内容：这一步不属于厂商的工具",
    "keep-how-include": "以 include-models: true（--include-models）运行",
    "keep-how-size": "因大小而略去；请调大 bundle-size（--bundle-size）",
    "keep-how-model": "{stage}：请在 artifacts.build 下指定 hb_compile 写出 {ending} 的目录",
    "keep-how-log": "hb_compile 把它写在启动时所在的目录；请将其与模型一起放在 artifacts.build 的目录中",
    "keep-how-quant-config": "请把 hb_compile 的 YAML 及其所指的 quant_config 放在 artifacts.build 的目录中或其旁边",
    "keep-how-input": "无法读取该样本；请给出 samples.raw",
    "keep-how-runtime-input": "请给出 samples.runtime，即送入部署模型的数据",
    "keep-how-board-input": (
        "该阶段是录制数据，因此此处不知道送入板卡的是什么；请把这些文件与录制数据放在一起，或以板卡运行该阶段"
    ),
    "keep-how-infer-output": "以后端 hbm_infer（defaults.hbruntime.python 中装有 hbm_infer）用同一输入运行 .hbm",
    "keep-how-board-output": "在板卡上（artifacts: {{hbm: {{board: …}}}}）用同一输入运行 .hbm",
    # --- replay
    "replay-nothing": "{path} 中没有可重新运行的失败环节；请用 driftgate explain 查看",
    "replay-still": "{subject} {target}，{link}：仍然失败",
    "replay-passes": "{subject} {target}，{link}：不再失败",
    "replay-unknown": "{subject} {target}，{link}：无法判断",
    "replay-ran": (
        "{stage}：已用 {backend} 重新运行；{total} 个输出中有 {count} 个与原来逐位一致，最大变化为值域的 {change}"
    ),
    "replay-recorded": "{stage}：没有重新运行，使用证据包中的输出：{reason}",
    "replay-is-recording": "该阶段是录制数据",
    "replay-no-artifact": "证据包中没有它的文件；请给出配置文件（-c）、产物所在的目录（--artifacts），或含模型的证据包",
    "replay-no-backend": "后端 {backend} 需要只在配置文件中才有的信息；请用 -c 给出",
    "replay-other-artifact": "{stage}：运行的产物不是当时失败的那个",
    "replay-none-ran": "两侧都无法重新运行；重新测量的是证据包中的数值，不能说明当前产物的情况",
    "replay-same": (
        "仅凭这些样本看不出失败：失败来自全部样本的统计，或由文件判定；现在运行的产物给出的结果与当时逐位一致"
    ),
    "replay-not-by-samples": (
        "仅凭这些样本看不出失败：失败来自全部样本的统计，或由文件判定，而现在运行的产物给出的数值已与当时不同；"
        "请运行 driftgate check"
    ),
    "replay-no-target": "配置中没有 {subject} 的目标平台 {target}；请给出检查时使用的配置文件",
    "replay-refused": "运行时拒绝加载：{reason}",
    "replay-samples": "证据中 {tensor} 的形状为 {shape}，不能平分为 {count} 个样本；无法重新运行该证据包",
    "replay-line": "{output}：{criterion} 原为 {before}，现为 {after}，限值 {limit}",
    # --- merging shards
    "merge-plans": "这些分片属于不同的计划：{digests}；只给同一计划的分片",
    "merge-conflict": "两个分片的 {fact} {key} 互相矛盾；只给其中一个，或重新运行该作业段",
    # --- backends and workers
    "artifact-missing": "找不到 {path}；检查产物的路径以及生成它的步骤",
    "artifact-unreadable": "无法读取 {path}：{reason}",
    "artifact-no-path": "{stage}：后端 {backend} 需要文件路径；请设置 path",
    "backend-unknown": "没有后端 {backend}；已知的有：{known}",
    "backend-import": "无法从 {target} 导入后端 {backend}：{reason}",
    "session-closed": "{stage}：在样本 {sample} 之前会话已关闭",
    "feed-missing": "{stage}，样本 {sample}：输入“{name}”没有输入数据；为样本提供同名张量，或在 inputs 下映射该名称",
    "feed-unknown": "{stage}，样本 {sample}：“{name}”不是模型的输入，模型的输入有：{known}",
    "feed-dtype": "{stage}，样本 {sample}：“{name}”的类型为 {found}，模型要求 {wanted}；请将样本存为 {wanted}",
    "feed-shape": "{stage}，样本 {sample}：“{name}”的形状为 {found}，模型要求 {wanted}；请按该形状保存样本",
    "onnx-damaged": "{path} 不是完整的 ONNX 文件：为空、被截短或是其他内容；请重新导出或拷贝",
    "onnx-external-missing": "{path} 的权重存放在 {location} 中，但 {folder} 里没有该文件；请把两个文件放在同一目录",
    "onnx-external-short": "{path} 的权重存放在 {location} 中，该文件只有 {bytes} 字节，需要 {wanted} 字节；请重新拷贝",
    "onnx-external-outside": "{path} 的权重存放在“{location}”中，位于其目录之外；请重新保存模型，把权重放在模型旁边",
    "onnx-vendor-operator": (
        "{path}：节点“{node}”是“{domain}”的 {operator}，需要厂商的运行时：在 defaults.hbruntime.python 下指定其解释器，"
        "或为该阶段提供录制数据"
    ),
    "onnx-unknown-domain": (
        "{path}：节点“{node}”是“{domain}”的 {operator}，ONNX Runtime 和模型都没有定义它；在 custom-ops 下给出其算子库"
    ),
    "onnx-tap-unknown": "{path} 的主图中没有张量 {taps}；抽取点须为节点输出的名称",
    "ort-level": "{stage}：没有优化级别 {level}；已知的有：{known}",
    "ort-provider": "{stage}：此 ONNX Runtime 没有 {provider}；可用的有：{available}",
    "ort-provider-failed": "{stage}：ONNX Runtime 无法启动 {provider}，本会改用其他执行提供程序；检查其驱动和库",
    "ort-library": "{stage}：无法加载算子库 {path}：{reason}",
    "ort-refused": "{stage}：ONNX Runtime 拒绝加载 {path}：{reason}",
    "ort-refused-node": "{stage}：ONNX Runtime 在节点“{node}”（{operator}）处拒绝加载 {path}：{reason}",
    "ort-run": "{stage}，样本 {sample}：ONNX Runtime 在节点“{node}”（{operator}）处失败：{reason}",
    "ort-odd-outputs": "{stage}：{outputs} 无法比对，已略过：其类型不是 numpy 支持的数值张量",
    "recording-output-missing": "{stage}：signature.json 列出了 {outputs}，但 {path} 中没有；已录制的有：{recorded}",
    "recording-tap-missing": "{stage}：{path} 中没有录制 {taps}；已录制的有：{recorded}",
    "recording-sample-missing": "{stage}：{path} 的 {count} 个样本中没有 {sample}；请用全部样本重新录制该阶段",
    "recording-incomplete": "{stage}，样本 {sample}：{path} 缺少 {outputs}，而其首个样本有；请重新录制",
    "signature-no-json": "{path} 不是 JSON：{reason}",
    "signature-form": "{path} 必须是只含一个键“outputs”的对象，其值为按名称列出输出的对象",
    "signature-output": "{path}：“{output}”的条目必须是对象",
    "signature-key": (
        "{path}：“{output}”的 {key} 为 {found}；可用的键有 scales（大于 0 的数）、zero_points（整数）、axis（整数或 "
        "null）和 step（大于 0 的数或 null）"
    ),
    "signature-no-scales": "{path}：“{output}”有 zero_points 但没有 scales；请补上 scales",
    "signature-lengths": (
        "{path}：“{output}”有 {scales} 个 scale 和 {zero_points} 个零点；请给一个零点，或每个 scale 各给一个"
    ),
    "signature-no-axis": "{path}：“{output}”有 {scales} 个 scale 但没有 axis；请写明它们沿哪个轴排列",
    "signature-axis": "{path}：“{output}”沿轴 {axis} 有 {scales} 个 scale，而张量在该轴的长度为 {length}",
    "worker-start": "{stage}：无法启动 {command}：{reason}；检查该阶段的解释器",
    "worker-container": (
        "{stage}：容器在工作进程输出任何内容之前就以退出码 {exit_code} 结束；请把工作进程所在的 {folder} "
        "和产物所在的目录以原路径挂载（-v {folder}:{folder}），并保持 stdin 打开（-i）。最后的输出：{tail}"
    ),
    "worker-died": "{stage}：{command} 的工作进程在 {doing} 时以退出码 {exit_code} 结束；最后的输出：{tail}",
    "worker-silent": "{stage}：{command} 的工作进程在 {doing} 时 {seconds} s 内没有应答；最后的输出：{tail}",
    "worker-nonsense": (
        "{stage}：{command} 的工作进程应答了 {found}，不符合协议；是否解释器自己向 stdout 打印了内容？最后的输出："
        "{tail}"
    ),
    "worker-protocol": "{stage}：{command} 的工作进程使用协议 {found}，要求 {wanted}；该脚本不属于此版本的 driftgate",
    "worker-over": "{stage}：{command} 的工作进程此前已失败，无法继续",
    "worker-package": "{stage}：{command} 没有 {package}：{reason}；请在该环境中安装，或指定其他解释器",
    "worker-raised": "{stage}：{command} 的工作进程在 {doing} 时抛出异常：{reason}；最后的输出：{tail}",
    "board-address": "板卡 {board}：代入变量后，host 不符合 [user@]address[:port] 的形式；此处不显示其内容",
    "board-busy": "板卡 {board}：{seconds} s 内没有空闲板卡；占用者：{holders}",
    "board-check-board": (
        "在此板卡上，hbm_infer 的结果与 .bc 一致，而 hrt_model_exec 不一致：问题在该工具、其版本或 dump 的读取方式"
    ),
    "board-check-compiler": (
        "在此板卡上，hbm_infer 与 hrt_model_exec 一致，而 .bc 对相同输入给出不同结果：问题在编译出的文件本身，或该 "
        ".hbm 不是由此 .bc 编译的"
    ),
    "board-check-infer-failed": "无法用 hbm_infer 复核最差样本：{reason}",
    "board-check-inputs-same": "板卡收到的输入与给它的逐位一致：问题不在输入准备",
    "board-check-inputs-unseen": "板卡没有 dump 任何输入，因此不能排除输入准备的问题",
    "board-check-no-infer": (
        "要区分是板卡还是编译器的问题，请在 defaults.hbruntime.python 下指定厂商的解释器：这样 hbm_infer "
        "也会运行最差样本"
    ),
    "board-check-unclear": "对最差样本，hbm_infer 的结果与 hrt_model_exec 和 .bc 都不一致",
    "board-dump": "{stage}：板卡 {board} dump 出的 {sample} 的 {output} 与其运行时的描述不符：{reason}",
    "board-environment": (
        "{stage}：板卡 {board} 因此前运行的程序而无法运行，并非模型的问题：{said}。请重启板卡，或指定其他核"
    ),
    "board-feed": "输入 {input} 收到 {found} {shape}，而板卡运行时要求 {wanted}：请提供 runtime 样本，或声明该输入",
    "board-full": "{stage}：板卡 {board} 的 {folder} 空间不足：{reason}。请清理空间，或调低 cache-mib",
    "board-garbage": "{stage}：板卡 {board} 的应答不是该工具的输出：{said}",
    "board-hangs": (
        "{stage}：板卡 {board} 上的 {tool} 对一个样本在 {seconds} s 内没有任何输出，已被终止；如确需更长时间，请调大 "
        "sample-timeout"
    ),
    "board-lost": "{stage}：在步骤 {step} 与板卡 {board} 失去连接，且无法重新连上：{reason}",
    "board-march": "{stage}：模型是为 {found} 编译的，而板卡 {board} 是 {wanted}",
    "board-memory": "{stage}：板卡 {board} 目前没有模型所需的 {length} 字节内存：请结束板卡上的其他程序，或重启板卡",
    "board-no-dump": "{stage}：板卡 {board} 对 {sample} dump 出了 {found}，没有 {output}",
    "board-no-tool": (
        "{stage}：板卡 {board} 没有 {tool}：在该板卡的 `tool` 下给出其路径，在 `environment` 下给出 LD_LIBRARY_PATH。"
        "板卡的输出：{said}"
    ),
    "board-refused": "{stage}：板卡 {board} 的运行时拒绝加载：{said}",
    "board-target": "板卡 {board} 是 {march}，与 {target} 的 march 不符：请另指定一块，例如 lab-{{target}}",
    "board-taps": "{stage}：板卡只给出最终输出；无法抽取 {taps}",
    "board-tool-failed": "{stage}：板卡 {board} 上的 {tool} 失败，退出码 {exit_code}：{said}",
    "board-unknown": (
        "{stage} 在板卡上运行，而 {name} 没有在 `boards` 下描述（{known}）：请在产物的 `board` 或 defaults.board "
        "下指定其中一块"
    ),
    "board-unreachable": "无法连接板卡 {board}：{reason}",
    "board-variables": "板卡 {board}：环境中未设置 {names}",
    "dumps-none": (
        "{path} 中没有含 model_infer_output_<number>_<name>.bin 的目录：请给出这样的目录，其中每个样本各有一个 "
        "hrt_model_exec 的 dump 目录"
    ),
    "dump-missing": (
        "{path} 中没有 model_infer_output_{number}_….bin，即 {output}：请用 --enable_dump 和 --dump_format bin 重新 "
        "dump 该样本"
    ),
    "dump-otherwise": "{path} 与 model-info 所描述的 {output} 不符：{reason}",
    "board-algorithms": "板卡 {board}：其 SSH 服务与 driftgate 没有共同的算法：{reason}。请更新板卡上的 SSH 服务",
    "board-jump-forbidden": "板卡 {board}：途经的 {jump} 不允许转发；请在其 sshd_config 中设置 AllowTcpForwarding yes",
    "board-key-changed": (
        "板卡 {board} 的主机密钥与已知的不同：{kind} {fingerprint}。板卡可能重装过，也可能存在中间人；"
        "没有发送任何内容。请与板卡上对 /etc/ssh/ssh_host_*_key.pub 执行 `ssh-keygen -lf` 的结果比较，确认一致后再替换 "
        "known_hosts 中对应的行"
    ),
    "board-key-form": (
        "板卡 {board}：`key` 所指的不是可用的私钥；请给出不带 .pub 的文件，OpenSSH 或 PEM 格式，类型为 RSA、ECDSA 或 "
        "Ed25519"
    ),
    "board-key-passphrase": (
        "板卡 {board}：私钥设有口令，而此处无人输入：请用 ssh-add 把它加载到 agent，或指定没有口令的密钥"
    ),
    "board-key-revoked": "板卡 {board} 的主机密钥在 known_hosts 中已标为吊销：{kind} {fingerprint}。没有发送任何内容",
    "board-key-unknown": (
        "板卡 {board}：其主机密钥 {kind} {fingerprint} 未知，因此没有发送任何内容。请用 `ssh-keyscan -p {port} "
        "ADDRESS` 获取，与板卡上对 /etc/ssh/ssh_host_*_key.pub 执行 `ssh-keygen -lf` 得到的指纹比较，再把该行加入 "
        "known_hosts"
    ),
    "board-key-unreadable": "板卡 {board}：无法读取其私钥：{reason}",
    "board-known-hosts": "板卡 {board}：无法读取 known_hosts：{reason}",
    "board-proxy": "板卡 {board}：无法启动其代理命令：{reason}",
    "board-sign-in": "板卡 {board} 拒绝登录；已尝试：{tried}；它接受：{allowed}。检查该板卡的用户、密钥、agent 和密码",
    "board-model": "{path} 描述了模型 {names}，而要求的是 {model}：请在产物的 `model` 下指定其中一个",
    "board-tensors": (
        "{path} 没有给出每个 {direction} 的类型、形状和量化信息：{tensors}。请保留 hrt_model_exec model_info 的完整输出"
    ),
    "board-dynamic": "{path} 中 {tensor} 的形状或 stride 只在运行时才能确定，因此无法读取其 dump",
    "hbruntime-absent": (
        "{stage}：{python} 无法导入 horizon_tc_ui（由其中的 HBRuntime 运行此文件）：{reason}。请在 `python` 下指定 "
        "OpenExplorer 环境的解释器或容器"
    ),
    "hbruntime-old": (
        "{stage}：{python} 的工具属于 XJ3/J5，不是征程 6：{reason}。请在 `python` 下指定 OpenExplorer 3 环境的解释器"
    ),
    "hbruntime-refused": "{stage}：HBRuntime 拒绝加载 {path}：{reason}",
    "hbruntime-outputs": "{stage}：HBRuntime 给出 {found} 个输出，而文件中有 {wanted} 个：{outputs}",
    "hbruntime-model": "{stage}：hbdk4.compiler 本应运行 {path} 的 {model}，但失败了：{reason}",
    "hbruntime-networks": "{stage}：{path} 中有网络 {names}，而要求的是 {model}：请在产物的 `model` 下指定其中一个",
    "hbruntime-taps": "{stage}：HBRuntime 只给出 {path} 的输出；无法抽取 {taps}",
    "hbm-taps": "{stage}：板卡只给出 {path} 的输出；无法抽取 {taps}",
    "hbm-networks": "{stage}：{path} 中有网络 {names}，而要求的是 {model}：请在产物的 `model` 下指定其中一个",
    "hbm-outputs": "{stage}：板卡没有给出 {path} 的 {outputs}；给出的是：{found}",
    "hbm-infer-host": (
        "{stage}：hbm_infer 需要能通过网络访问的板卡：请在 `board` 下指定一块配有 hosts 的板卡；在板卡本机上请使用 "
        "hbm_runtime"
    ),
    "hbm-infer-jump": (
        "{stage}：hbm_infer 只能直连 {board}，不能经跳板机或代理：请在板卡旁的机器上运行，或改用 hrt_model_exec "
        "运行此文件"
    ),
    "hbm-infer-absent": (
        "{stage}：{python} 无法导入 hbm_infer（由它在板卡上运行此文件）：{reason}。请在 `python` 下指定 OpenExplorer "
        "环境的解释器或容器"
    ),
    "hbm-infer-old": (
        "{stage}：{python} 的 hbm_infer 为 {version}；要求 3.9.0 或更高：请使用你的 OpenExplorer 版本自带的 hbm_infer"
    ),
    "hbm-infer-login": (
        "{stage}：{board} 拒绝用此用户、密码或密钥登录：{reason}。请用 ssh 手动试一次；使用密码需要本机装有 sshpass"
    ),
    "hbm-infer-start": (
        "{stage}：hbm_infer 无法在 {board} 上启动其服务：{reason}。确认 ssh 能连上板卡，且板卡上 hbm_infer 的目录存在、"
        "可写并有剩余空间"
    ),
    "hbm-infer-port": (
        "{stage}：{board} 上 hbm_infer 服务的端口没有返回首个应答：{reason}。可能被防火墙拦截：在板卡上运行 "
        "test_grpc_server_linux，在本机用其地址和端口运行 python3 -m hbm_infer.grpctest.test_grpc_client"
    ),
    "hbm-infer-lost": (
        "{stage}：{board} 此前有应答，现在没有了：{reason}。网络或其上的服务已断开：确认板卡是否重启过，并查看其 "
        "hbm_infer 目录下的服务日志"
    ),
    "hbm-infer-timeout": (
        "{stage}：{board} 在 {seconds} s 内没有返回一帧：{reason}。网络较大时请调大该板卡的 sample-timeout；"
        "否则查看板卡上还在运行什么"
    ),
    "hbm-infer-status": "{stage}：{board} 上的 hbm_infer 服务无法用 {path} 完成任务：{reason}",
    "hbm-infer-raised": "{stage}：hbm_infer 在 {board} 上运行 {path} 时抛出 {reason}；最后的输出：{tail}",
    "hbm-infer-refused": "{stage}：{board} 拒绝加载 {path}：{reason}",
    "hbm-runtime-absent": (
        "{stage}：{python} 无法导入 hbm_runtime（由它在板卡本机上运行此文件）：{reason}。请在该环境中安装，或在 "
        "`python` 下指定装有它的解释器；从其他机器运行请使用 hbm_infer"
    ),
    "hbm-runtime-board": "{stage}：板卡无法接收 {path}：{reason}。查看还加载了什么、剩余多少内存",
    "hbm-runtime-refused": "{stage}：hbm_runtime 拒绝加载 {path}：{reason}",
    "doctor-name": "项目",
    "doctor-state": "状态",
    "doctor-found": "实际",
    "doctor-purpose": "用途",
    "doctor-there": "正常",
    "doctor-missing": "未找到",
    "doctor-odd": "异常",
    "doctor-lacking": "缺失（必需）",
    "doctor-for-driftgate": "driftgate 本身",
    "doctor-for-build": "生成 .bc 和 .hbm",
    "doctor-for-second-opinion": "对环节的第二意见",
    "doctor-for-facts": "构建的事实数据",
    "doctor-for-tuning": "查找敏感节点",
    "doctor-board-away": "无法连接板卡 {board}：{reason}。是否已上电，网络是否连通？",
    "doctor-board-clock": "板卡 {board} 的时钟比本机快 {seconds} s；除其日志中的时间外不影响任何内容",
    "doctor-board-room": "板卡 {board} 的 {folder} 剩余 {free_mib} MiB：请清理空间，或指定其他 `folder`",
    "doctor-board-tool": "板卡 {board} 没有 {tool}：在 `tool` 下给出其路径，在 `environment` 下给出 LD_LIBRARY_PATH",
    "doctor-for-board": "在板卡上运行",
    "doctor-for-stages": "{backends} 的工作进程",
    "doctor-for-output": "报告与录制数据",
    "doctor-get-package": "缺少 {package}：请用 pip 重新安装 driftgate，它会一并安装",
    "doctor-get-tool": (
        "不在 PATH 中：{tool}。它们随征程 6 的 OpenExplorer 提供（容器，或装有其 wheel 的虚拟环境）；没有它们，"
        "依赖它们的阶段一直为 ERROR"
    ),
    "doctor-old-tools": (
        "不在 PATH 中：{tool}，却有 hb_mapper：这是 XJ3/J5/X3/X5 的工具，不适用于征程 6；请激活 OpenExplorer 3 环境"
    ),
    "doctor-tool-silent": "{tool} 在 {seconds} s 内没有应答；请在空目录中手动运行以查明原因",
    "doctor-old-version": (
        "{tool} 的版本为 {version}：这是 XJ3/J5/X3/X5 的工具，不适用于征程 6；请激活 OpenExplorer 3 环境"
    ),
    "doctor-tool-died": "{command} 以退出码 {exit_code} 结束：{said}；请手动运行以查明原因",
    "doctor-tools-mixed": "{tool}：同属一个包，版本却不一致（{versions}）：PATH 中混有多个环境；请只激活一个",
    "doctor-versions-apart": "{name}：从未见过这样的版本组合：{pairs}；请取自同一个 OpenExplorer 版本",
    "doctor-runtime-older": (
        "{name}：HBRT {hbrt} 早于此处用于编译的 hbdk {hbdk}，无法加载其产物；两者请取自同一个 OpenExplorer 版本"
    ),
    "doctor-interpreter": "无法启动 {command}（{reason}）：请在产物的 `python` 或 defaults.hbruntime 下给出其他命令",
    "doctor-verifier": "无法启动 {command}（{reason}）：请在 defaults.verifier 下给出其他命令",
    "doctor-interpreter-silent": (
        "{command} 在 {seconds} s 内没有应答：请手动运行以查明原因；容器可能需要先拉取镜像，可用 --seconds 给更多时间"
    ),
    "doctor-interpreter-died": (
        "{command} 以退出码 {exit_code} 结束，没有应答：{said}；它必须是可以接 `-c` 或脚本的 Python 解释器"
    ),
    "doctor-interpreter-packages": "{command} 无法导入 {packages}：请在该环境中安装，或指定其他解释器",
    "doctor-interpreter-old": (
        "{command} 的工具属于 XJ3/J5/X3/X5（{packages}），不适用于征程 6：请指定 OpenExplorer 3 环境的解释器"
    ),
    "doctor-interpreter-files": "{command} 看不到 {paths}：容器必须以原路径挂载这些目录以及临时文件目录",
    "doctor-container-stdin": "{command} 没有 stdin，而与工作进程的通信要用它：请加上 -i，不要加 -t",
    "doctor-build": "{subject} 的产物",
    "doctor-room": "{folder} 剩余空间不足 {wanted_mib} MiB：录制数据可能不完整",
    "declared-otherwise": "样本 {sample} 的输入 {input} 与声明不符：{reason}",
    "declared-missing": "样本 {sample} 没有已声明的 {inputs}；它有 {feeds}",
    "torch-either": "{stage}：load（module:function）和 path（TorchScript 文件）只给其一",
    "torch-weights-alone": "{stage}：weights 需要 load（module:function）来创建要加载权重的模块",
    "torch-load-form": "{stage}：load 为“{load}”，应为 module:function",
    "torch-load-raised": "{stage}：{load} 抛出 {reason}；最后的输出：{tail}",
    "torch-load-type": "{stage}：{load} 返回了 {found}，应为 torch.nn.Module",
    "torch-weights-pickled": (
        "{stage}：{path} 中不只有张量，这类内容从不加载；请用 torch.save(model.state_dict(), path) 重新保存（{reason}）"
    ),
    "torch-weights-damaged": (
        "{stage}：{path} 中没有 state dict：{reason}；请用 torch.save(model.state_dict(), path) 重新保存"
    ),
    "torch-weights-shapes": "{stage}：{path} 的权重与模块形状不同：{mismatches}",
    "torch-weights-keys": "{stage}：{path} 的权重与模块不匹配；缺少：{missing}；多出：{unexpected}",
    "torch-inputs-unnamed": "{stage}：forward 使用 *{parameter}；请给输入命名，例如由 load 返回一个包装模块",
    "torch-fake-quant": (
        "{stage}：网络含有 horizon_plugin_pytorch {version} 的模块（{found}），而其 quantization 没有 "
        "set_fake_quantize 及 FakeQuantState.VALIDATION（唯一用于比对的状态）：{reason}；请在 `python` "
        "下指定两者都有的版本的解释器，替代 {command}"
    ),
    "torch-device": "{stage}：无法使用设备 {device}：{reason}",
    "torch-output-type": "{stage}：输出 {output} 是 {found}；只能比对张量、数值及其嵌套",
    "torch-output-twice": "{stage}：有两个输出或抽取点都叫 {output}；请在 load 返回的包装模块中改名",
    "torch-tap-unknown": "{stage}：模块没有子模块 {taps}；抽取点须为 model.named_modules() 中的名称",
    "torch-tap-silent": "{stage}：{taps} 没有参与 forward，无法抽取",
    "torchscript-taps": "{stage}：TorchScript 无法抽取中间张量（{taps}）；请用 load 代替 path",
    "torchscript-refused": "{stage}：torch 拒绝加载 {path}：{reason}",
    "torchscript-no-zip": "{path} 不是 TorchScript 文件；请用 torch.jit.save 保存，或使用 load（module:function）",
    "torchscript-state-dict": (
        "{path} 是权重或 pickle 保存的模块，不是 TorchScript；请使用 load（module:function）并设 weights: {path}"
    ),
    "state-no-inputs": "{stage}：state 需要有输入的模型；录制数据没有输入",
    "state-output-unknown": "{stage}：state 指定了输出“{name}”，模型的输出有：{known}",
    "state-input-unknown": "{stage}：state 指定了输入“{name}”，模型的输入有：{known}",
    "state-input-twice": "{stage}：state 给同一个输入指定了两个输出：{names}",
    "state-unranked": (
        "{stage}：该阶段和其他阶段都没有给出 {names} 的形状，因此无法区分序列与常量；请使用录制数据，"
        "或在模型内部运行序列"
    ),
    "state-not-given": "{stage}，样本 {sample}：模型没有给出状态 {names}",
    "state-shape-completed": "{stage}：状态从零开始，动态维度取 1：{inputs}；如初始状态不同，请将其写入样本",
    "sequence-rank": "{stage}，样本 {sample}：“{name}”的形状为 {found}；应为序列 {wanted}，作为常量时则去掉其第一维",
    "sequence-lengths": "{stage}，样本 {sample}：各序列的长度必须相同且大于 0，实际为 {lengths}",
    "sequence-shapes": "{stage}，样本 {sample}：“{name}”的形状在各步之间变化：{shapes}；这样的输出无法沿时间堆叠",
    # --- samples and files
    "images-mixed": "{path} 中既有图像又有张量（.npz 或 .npy）；只保留其中一种",
    "images-none": "{path} 中没有图像；要求扩展名为以下之一的文件：{endings}",
    "images-twice": "{path}：图像 {names} 会两两得到同一个样本 id（不计扩展名，/ 写作 __）；请重命名",
    "images-undeclared-raw": "{path} 中是图像，但没有说明如何转为张量；请给出 samples.preprocess",
    "images-undeclared-runtime": (
        "{path} 中是图像，但没有说明如何转为张量；请写 runtime: {{from: {path}, as: rgb}}，颜色格式按部署模型填写，"
        "并给出 samples.preprocess"
    ),
    "manifest-decoder": (
        "{manifest} 由 {made} 生成，而这些图像由 {here} 读取；如只是解码器变了，请使用该版本或重新生成样本清单"
    ),
    "manifest-preprocess": (
        "{manifest} 是用另一套前处理生成的，{keys} 不同；请用 `driftgate samples -c` 重新生成，或恢复原来的值"
    ),
    "image-damaged": "无法解码图像 {path}：{reason}；请换上完整的图像，或将其移出目录",
    "image-long": "图像 {path} 为 {found} 像素，缩放后会远大于任何网络的输入；请将其移出目录",
    "image-mode": "图像 {path} 的像素类型为 {mode}，没有对应规则；应为每通道 8 或 16 位，取以下之一：{known}",
    "image-size": "图像 {path} 为 {found} 像素，应为 {wanted}；请改成该尺寸，或把 preprocess.resize 设为 none 以外的值",
    "images-no-pillow": "读取图像需要 Pillow，但未安装；请用 `pip install pillow` 安装",
    "samples-names": "{path}：文件名 {names} 不是 UTF-8；请重命名",
    "samples-changed": "以下样本与 {manifest} 不符：{ids}；请恢复原来的数据，或重新生成样本清单",
    "sample-feeds": "样本 {sample} 的张量为 {found}，之前的样本为 {wanted}；所有样本的张量必须相同",
    "plan-tampered": "结果文件 {path}：{subject} 的计划与文档所记的摘要不符；文件写出后被改动过",
    "labels-absent": "无法读取标签 {path}：{reason}",
    "labels-count": "标签 {path} 有 {found} 个标签，样本有 {wanted} 个；请给每个样本一个标签，或在 `ids` 中写明样本",
    "labels-columns": "标签 {path} 的列为 {columns}；应为：{wanted}",
    "labels-columns-boxes": "标签 {path} 的列为 {columns}，不是检测框；除 id 和 class 外还应有：{wanted}",
    "labels-boxes": "标签 {path}：{samples} 的目标有误；数值应有限，宽高不小于零，class 为 0、1、2……，crowd 为 0 或 1",
    "labels-coco-boxes": (
        "标签 {path}：{count} 个标注的 bbox 不是四个有限数值：{ids}；请以像素为单位写出 x、y、width、height"
    ),
    "labels-coco-images": "标签 {path}：{count} 张图像缺少 id 或 file_name：{ids}；两者都要写",
    "labels-coco-lists": "标签 {path} 缺少列表 {lists}；请给出含 images、annotations 和 categories 的 COCO 文件",
    "labels-coco-of-no-category": "标签 {path}：{count} 个标注的 category_id 不在 categories 中：{ids}；请改正",
    "labels-coco-of-no-image": "标签 {path}：{count} 个标注的 image_id 不在 images 中：{ids}；请改正",
    "labels-coco-twice": "标签 {path}：{count} 个图像 id 重复：{ids}；每个只保留一份",
    "labels-extra": (
        "标签 {path} 中有 {count} 个标签没有对应样本：{samples}；请恢复这些样本、删去这些标签，或设置 labels: {{path: "
        "…, extra: ignore}}"
    ),
    "labels-loose": "标签 {path}：{samples} 的图像不在任何类别的目录中；请移入对应目录",
    "labels-value-box": "标签 {path}，第 {line} 行：{value} 不是六个数值；请写检测框、类别，以及可选的 crowd",
    "labels-value": "标签 {path}，第 {line} 行：{value} 不是类别编号；请给整数",
    "labels-format": "标签 {path} 的扩展名未知；应为：{wanted}",
    "labels-garbled": "无法解析标签 {path}：{reason}；请重新写出该文件",
    "labels-kind-classification": (
        "标签 {path}：`labels` 为 {dtype}，形状 {shape}；应为整数，形状 (samples,) 或 (samples, rows)"
    ),
    "labels-kind-detection": (
        "标签 {path} 中有 {found}；应有：counts (samples,)，以及全部目标合在一起的 boxes (n, 4)、classes (n,)、crowd "
        "(n,)"
    ),
    "labels-kind-regression": "标签 {path}：`labels` 为 {dtype}，形状 {shape}；应为数值，形状 (samples, …)",
    "labels-kind-segmentation": (
        "标签 {path}：`labels` 为 {dtype}，形状 {shape}；应为整数，形状 (samples, height, width)"
    ),
    "labels-missing": "标签 {path} 中没有样本 {samples} 的标签；请补上，或把这些样本从样本清单中去掉",
    "labels-twice": "标签 {path} 中有样本出现两次：{samples}；每个只保留一份",
    "manifest-absent": "无法读取样本清单 {path}：{reason}；请用 `driftgate samples` 生成",
    "manifest-garbled": "样本清单 {path} 不是 JSON：{reason}；请用 `driftgate samples` 重新生成",
    "manifest-invalid": "样本清单 {path} 的 {where} 有误：{reason}；请用 `driftgate samples` 重新生成",
    "sample-changed": (
        "样本 {sample} 与计划中的不同：其张量之后有改动，或 raw 和 runtime 不是生成样本清单时的数据；请恢复原来的数据，"
        "或重新生成样本清单"
    ),
    "samples-differ": "raw 有 {raw} 个样本，runtime 有 {runtime} 个；两者的 id 必须相同，以下只在一侧：{ids}",
    "samples-extra": "以下样本不在 {manifest} 中：{ids}；请重新生成样本清单以纳入它们",
    "samples-lost": "{manifest} 中的以下样本不在数据里：{ids}；请恢复它们，或重新生成样本清单",
    "samples-none": "一个样本也没有；至少给一个",
    "folder-not-written": "无法写入目录 {path}：{reason}；那里没有保存任何内容",
    "results-absent": "无法读取结果文件 {path}：{reason}",
    "results-garbled": "结果文件 {path} 不是 JSON：{reason}；请重新运行该作业段",
    "results-invalid": "结果文件 {path} 的 {where} 有误：{reason}；请重新运行该作业段",
    "results-other": "{path} 不是 {wanted} 格式的文档",
    "results-version": (
        "结果文件 {path} 的版本为 {found}，此 driftgate 只读版本 {wanted}；请使用写出它的 driftgate 或更新的版本"
    ),
    "facts-garbled": "无法读取事实数据 {path}：{reason}；请重新运行该作业段",
    "facts-length": "{path} 的事实数据不匹配：{link} {output} 的行数与样本数不同；请重新运行该作业段",
    "facts-missing": "facts.npz 缺少 results.json 所列的表 {table}；两个文件必须来自同一次运行",
    "facts-table": "facts.npz 的表 {table} 形状为 {shape}，版本 1 中没有这样的表；两个文件必须来自同一次运行",
    "tensors-missing": "找不到 {path}；请给出堆叠的 .npz、由 <id>.npz 组成的目录，或由 <id>/<tensor>.npy 组成的目录",
    "tensors-kind": (
        "{path} 中没有可读取的张量；请给出堆叠的 .npz、由 <id>.npz 组成的目录，或由 <id>/<tensor>.npy 组成的目录"
    ),
    "tensors-empty": "{path} 中没有样本；检查写出它的步骤",
    "tensors-mixed": "{path} 中既有 .npz 文件又有 .npy 文件的目录；只保留其中一种",
    "tensors-unreadable": "无法读取 {path}：{reason}",
    "tensor-pickled": (
        "{path}：“{tensor}”含有 Python 对象，这类内容从不加载；请以数值重新保存，例如 np.asarray(values, "
        "dtype=np.float32)"
    ),
    "tensor-no-numbers": "{path}：“{tensor}”的类型为 {dtype}，应为数值（float、integer 或 bool）；请按此重新保存",
    "tensor-damaged": "{path}：“{tensor}”已损坏：{reason}；请重新写出或拷贝该文件",
    "npz-damaged": "{path} 不是完整的 .npz 文件：{reason}；请重新写出或拷贝",
    "npz-stranger": "{path} 中的“{member}”不是数组；请用 np.savez 重新保存",
    "stack-scalar": "{path}：{tensors} 没有样本轴；请将样本沿轴 0 堆叠",
    "stack-unequal": "{path}：各数组的样本数不同：{lengths}；请在每个数组中堆叠相同的样本",
    "samples-hollow": "{path}：{samples} 的目录中没有 .npy 文件；请重新写出这些样本",
    "sample-unknown": "{path} 的 {count} 个样本中没有 {sample}：{ids}",
    "file-not-written": "无法写入 {path}（{reason}）；请给出可写的目录",
    # --- settings
    "config-absent": "无法读取配置文件 {path}：{reason}；请用 `driftgate init` 生成，或用 -c 指定",
    "config-encoding": "配置文件 {path} 不是 UTF-8：{reason}",
    "config-no-yaml": "{path}:{line}: 不是 YAML：{reason}",
    "config-not-mapping": "{path}：应为带值的键（version、subjects……），实际是其他内容",
    "config-key-twice": "{path}:{line}: 键 {key} 出现两次；只保留一个",
    "config-unknown-key": "{path}:{line}: {where} 中有未知的键 {key}；已知的键见 `driftgate schema config`",
    "config-unknown-key-near": "{path}:{line}: {where} 中有未知的键 {key}；是否想写 {near}？",
    "config-missing-key": "{path}:{line}: {where} 缺少键 {key}",
    "config-wrong-value": "{path}:{line}: {where} 为 {found}；应为：{wanted}",
    "config-refused-value": "{path}:{line}: {where} 为 {found}：{reason}",
    "config-extends": "{path}:{line}: 策略 {name} 的 extends 为 {route}；策略只能继承已有的策略，且不能继承自身",
    "config-nested": "{path} 中有包含自身的别名，或展开后的位置过多；请不用别名写出",
    "wanted-above": "大于 {value}",
    "wanted-entries": "至少 {value} 项",
    "wanted-filled": "非空文本",
    "wanted-integer": "整数",
    "wanted-least": "不小于 {value}",
    "wanted-list": "列表",
    "wanted-mapping": "带值的键",
    "wanted-number": "数值",
    "wanted-one-of": "{value}",
    "wanted-path": "路径",
    "wanted-pattern": "形如 {value} 的文本",
    "wanted-text": "文本",
    "wanted-truth": "true 或 false",
    "config-unknown-name": "{path}:{line}: 没有 {kind} {name}；已知的有：{known}",
    "config-file-absent": "{path}:{line}: {where}：找不到 {file}（在 {root} 下查找）",
    "config-no-samples": "{path}:{line}: {where} 没有指定数据；请给出 raw、manifest 或两者",
    "policy-unknown": "没有策略 {name}；已知的有：{known}",
    "profile-unknown": "没有配置档 {name}；已知的有：{known}",
    "profile-size": "配置档 {name} 要求 {wanted} 个样本，实际有 {found} 个；请给 1 到 {found} 之间的数",
    "subject-unknown": "没有被测网络 {names}；已知的有：{known}",
    "too-few-stages": "{subject} 只有阶段 {stages}，且没有得分；一个环节需要两个阶段",
    # --- judgement
    "repro-written": "能重现问题的最小部分在 {folder}/ 中（repro.onnx 及其输入和两侧输出）；单独运行时误差为 {error}",
    "repro-not-written": "没有最小复现：{reason}",
    "score-sample": "无法为样本 {sample} 评分：{reason}",
    "score-whole": "没有得到整个数据集的得分：{reason}",
    "score-own-missing": "没有指定自定义评分器；请把 score.scorer 设为 module:function",
    "score-own-number": "你的评分器对一个样本给出了 {found} 个值；应为一个数值",
    "function-name": "{function} 不是 module:function 的形式",
    "function-import": "无法导入 {function}：{reason}",
    "function-callable": "{function} 是 {found}，不是函数",
    "function-returned": "{function} 返回了 {found}；应为数组、数值或由数组组成的字典",
    "score-unchanged": "没有决策改变，n = {n}",
    "score-certain": "n = {n} 时可以确定：损失在 {low} … {high} % 之间",
    "score-noise": "n = {n} 时处于噪声范围内：损失在 {low} … {high} % 之间",
    "score-noise-needs": "n = {n} 时处于噪声范围内：损失在 {low} … {high} % 之间；需要 {needed} 个样本才能判断",
    "score-unsure": "{n} 个样本不足以区分损失与限值，而策略对不确定的情况判为失败",
    "advice-export": (
        "先查导出和前后处理：给两侧同一个前处理后的张量，先比对原始输出，再比对数据集。由你处理；不要动校准和 QAT。"
    ),
    "advice-optimisation": (
        "模型优化阶段改变了网络，而它不应改变：请把 original_float 和 optimized_float 交给厂商。不要动校准数据、scale "
        "和 QAT。"
    ),
    "advice-calibration": (
        "这是量化损失，不是一致性问题：确认校准数据覆盖真实数据、没有离群值拉大范围，再找出敏感节点并调整 "
        "quant_config。由你处理；仍不达标再找厂商。"
    ),
    "advice-lut": "此处查表算子被定点化：请把 original、optimized、calibrated 和 ptq 的 ONNX 一并交给厂商。",
    "advice-fixed-point": (
        "导出一个不做任何模型修改的 .bc 再比对，以排除模型修改的影响；再查 input_type_rt、mean 和 scale、插入的节点。"
        "由你先处理，再找厂商；不要动 QAT。"
    ),
    "advice-removed": "被删除的输入或输出节点须由准备数据的一方重新补上：头部做量化，尾部做反量化。",
    "advice-board": (
        "按此顺序排查：输入准备、板端前后处理、stride 对齐、尾部类型（int32 或 fp32）。不要动学习率、observer 和 QAT "
        "训练轮数。"
    ),
    "advice-qat-training": "检查伪量化状态和 eval 模式，再查训练本身。",
    "advice-qat-export": "两侧都应为伪量化状态 VALIDATION 和 eval 模式；查表部分可以不同，其余只应有浮点噪声。",
    "advice-nv12": "所有阶段使用同一个 NV12 生成器；插入的转换必须给出相同的数值。",
    "advice-no-qat": "此处 QAT 解决不了问题。",
    "advice-no-qat-needed": "PTQ 已满足得分要求：不需要 QAT。",
    "advice-qat-may": "校准调优之后，QAT 可能有帮助。",
    "advice-qat-tuned": "校准已调优，损失仍然明显：QAT 更可能有帮助。",
    "advice-qat-few-nodes": "损失集中在少数节点：对这些节点提高精度或做 QAT 最划算。",
    "cut-failed": "无法切分待测侧的图，因此不知道自身误差：{reason}",
    "repro-other": "{stage} 中 {node} 附近的部分单独运行时误差为 {again}，而测得的误差为 {error}：不能复现",
    "repro-uncut": "无法切分 {stage}，因此不能单独运行其中一部分；请给出 ONNX 文件",
    "repro-unknown": "已比对的节点中没有 {node}；已知的有：{known}",
    "points-unpaired": "{reference} 与 {candidate} 按数值、结构或名称都没有共同的张量；确认两者是同一网络的不同形式",
    "points-none": "{stage}：内部没有可比对的浮点张量",
    "points-not-finite": "{stage}：{count} 个张量含有 NaN 或无穷大，第一个是 {tensor}；先查看计算它的节点",
    "tap-gap": "{stage}：抽取节点后的输出与不抽取时最多相差 {gap}",
    "tapped-level": (
        "{stage} 以优化级别 {level} 运行：抽取会妨碍优化器融合节点，因此比对的节点与实际运行的不完全相同；"
        "要消除这一差异，请把 level 设为 disabled"
    ),
    "investigate-no-samples": "{link}：没有可用于排查的样本；至少给一个",
    "taps-none": (
        "{stage}：{backend} 不提供输入与输出之间的任何内容；要逐节点比对，请为该阶段提供 ONNX 文件，或用 load 给出 "
        "nn.Module"
    ),
    "link-spans": "还跨越了不存在的 {stages}：按 {kind} 判定",
    "also-broken": "还超出限值：{criteria}",
    "below-floor": "两侧所有值都低于浮点噪声下限 {floor}",
    "bit-equal": "逐位一致",
    "float-floor": "并非逐位一致；按浮点噪声下限判定",
    "infinite-same": "{count} 个值在两侧为相同的无穷大，不计入",
    "ties-settled": "{count} 个得分相同的 top-k 条目顺序不同",
    "step-unknown": "步长未知，因此使用有损环节的限值",
    "singleton-axes": "长度为 1 的轴不同；按 {shape} 比对",
    "judged-by-score": "按得分判定",
    "candidate-nonfinite": "{stage} 给出 {count} 个 NaN 或无穷大的值，而基准侧为有限值",
    "reference-nonfinite": "基准侧 {stage} 给出 {count} 个 NaN 或无穷大的值；不可信",
    "zero-compared": "{output} 没有一个值可以比对",
    "nothing-compared": "没有比对任何内容",
    "samples-partial": "计划的 {planned} 个样本只测了 {done} 个",
    "run-missing": "没有作业段报告阶段 {stage}",
    "interrupted": "完成 {done} 个样本后被外部中止",
    "random-samples": "随机输入不能证明任何结论；请给出真实样本",
    "required-absent": "策略要求 {check}，但没有测量",
    "not-asked": "未要求：没有 {stages}",
    "no-link": "未要求：前面没有阶段",
    "no-declared-score": "未要求：没有声明得分",
    "no-board-score": "未要求：没有得分",
    "performance-one-thread": "{measured}，1 线程，核 {core}",
    "performance-threads": "{measured}，{threads} 线程，核 {core}",
    "performance-one-thread-estimate": "{measured}，1 线程，核 {core}；预估 {estimate}",
    "performance-threads-estimate": "{measured}，{threads} 线程，核 {core}；预估 {estimate}",
    "performance-slow": (
        "实测 {measured}，编译器静态预估 {estimate}：慢了 {times} 倍以上；查看输入准备、线程、频率或板卡的其他使用者"
    ),
    "performance-noise": "处于噪声范围内：{runs} 次运行在 {low} … {high} 之间，跨越限值两侧",
    "performance-unsure": "{runs} 次运行跨越限值两侧，而策略对不确定的情况判为失败",
    "performance-no-latency": "策略限制了 {limit}，但没有测量 {stage} 的延迟；请在板卡上测量，或从策略中去掉该限值",
    "performance-no-fps": "策略限制了 {limit}，但没有测量 {stage} 的帧率；请在板卡上测量，或从策略中去掉该限值",
    "performance-no-memory": (
        "策略限制了 {limit}，但板卡没有给出 {stage} 占用的内存；请让板卡可以读取它，或从策略中去掉该限值"
    ),
    "performance-unsound": (
        "无法判定 {limit}：各次运行的中位数、最小值和最大值为 {found}；应为大小顺序正确的正数：请重新测量"
    ),
    "performance-undeclared-latency": "策略限制了 {limit}，但没有声明用于对照的延迟；请声明，或改为限制 latency-ms",
    "performance-undeclared-fps": "策略限制了 {limit}，但没有声明用于对照的帧率；请声明，或改为限制 fps",
    "score-box": "标签中 {boxes} 个检测框的宽或高小于零；请以像素为单位给出 x、y、width、height",
    "score-box-class": "{of} 中有类别为 {found}；请给出类别的序号：0、1、2……",
    "score-boxes": "检测的 {of} 形状为 {shape}，应为 {wanted}；参见检测任务的形状说明",
    "score-boxes-nonfinite": "{of} 的 {count} 个框中有 {rows} 个含 NaN 或无穷大，无法排序；请查看该阶段的原始输出",
    "score-change": "{reference} → {candidate}",
    "score-incomplete": "{stage} 的 {score} 没有对每个样本都记录",
    "score-label": "标签 {label} 不是输出的 {classes} 个类别之一",
    "score-label-kind": "有标签的形状为 {shape}，类型为 {dtype}；请给整数，每个评分对象一个",
    "score-label-nonfinite": "有标签含 {count} 个 NaN 或无穷大；请改正标签",
    "score-other-items": "{a} 和 {b} 评分时使用的标签不同；请重新运行两个阶段",
    "score-other-samples": "{a} 和 {b} 评分时使用的样本不同；只有其中一个有 {samples}；请补跑缺少的样本",
    "score-output-nonfinite": "待后处理的 {total} 个数值中有 {count} 个为 NaN 或无穷大；请查看该阶段的原始输出",
    "score-own-nonfinite": "你的评分器返回了 {value}；请返回有限数值",
    "score-pixels": (
        "被评分输出的形状为 {shape}，与形状为 {labels} 的标签不匹配；请给出该形状的类别图，或以类别为首轴或末轴的得分"
    ),
    "score-values": "被评分输出的形状为 {shape}，标签为 {labels}；两者形状须相同",
    "score-whole-shards": (
        "你的评分器给 {stage} 的唯一得分由 {made} 个样本得出，而不是全部 {count} 个；请在一个作业段中运行该阶段"
    ),
    "score-yolo-shape": (
        "检测器输出的形状为 {shape}；应有一个长度为 {width} 的轴（4、类别数，以及 objectness（如有））和一个检测框轴；"
        "检查 classes 和 objectness"
    ),
    "score-output": "{stage} 没有可评分的输出 {output}，只有 {outputs}；请在 score.output 或 outputs 中指定",
    "score-rows": "被评分输出的形状为 {shape}，不是 {labels} 个标签各对应一行得分",
    "output-by-signature": "{output} 与 {partner} 配对，因为只有它们具有这种形式",
    "output-gone": "{stage} 没有给出样本 {sample} 的 {output}，而此前是有的",
    "output-kind": "输出 {output} 一侧为 {a}，另一侧为 {b}；只能比对数值",
    "output-permutation": "样本 {sample} 的输出 {output} 形状为 {shape}，与配置中的轴置换不匹配",
    "output-shape": (
        "{stage}：输出 {output} 的形状为 {shape}，基准侧为 {reference}（样本 {sample}）；如只是轴的顺序不同，请在 "
        "outputs.{output}.permute 下声明"
    ),
    "output-unpaired": (
        "输出 {output} 在 {stage} 中没有对应的输出，剩余的有：{others}；请在 outputs 下映射（diff：--output），或设为 "
        "null 以略过"
    ),
    "outputs-extra": "{stage} 还有没有比对的输出：{outputs}",
    "outputs-none": "{reference} 与 {candidate} 没有共同的输出；请在 outputs 下映射名称（diff：--output）",
    "feed-unwanted": "样本 {sample}：没有阶段使用输入数据 {feeds}；请改名、在 inputs 下映射，或从样本中去掉",
    "feeds-unused": "{stage} 没有使用输入数据 {feeds}",
    "input-unfed": "{stage}，样本 {sample}：输入 {inputs} 没有输入数据；该样本有 {feeds}；请在 inputs 下映射",
    "inputs-requantised": "{stage}：{inputs} 的量化节点已被删除，因此数值在此处按文件给出的 scale 量化",
    "calibration-counts": "各校准目录不匹配，每个样本在每个输入下应各有一个文件：{counts}",
    "calibration-file": "{path} 不是数值数组：{reason}",
    "calibration-empty": "{path} 中没有 .npy 文件；请给出 hb_compile 校准该输入时使用的目录",
    "evaluated-on-calibration": "{total} 个样本中有 {count} 个是网络校准时用过的数据：INT8 在这些样本上看起来比实际好",
    "declared-conflict": "输入 {input}：{field} 声明为 {found}，而构建时用的是 {other}",
    "runtime-from-raw": "{stage} 收到的是 raw 样本：没有声明 runtime 样本",
    # --- findings
    "float-inside": "该构建在网络内部有浮点算子，不可能逐位一致：按得分或按有损环节判定",
    "cause-march-mismatch": "模型编译时的 march 与目标平台不符",
    "next-march-mismatch": (
        "把 hb_compile yaml 的 march 设为目标平台的，或把 driftgate.yaml 的 platform 设为模型的，然后重新构建"
    ),
    "finding-accepted": "策略接受 {code}，且该发现已证实",
    "cause-batch-shape-mismatch": "待测侧固定的 batch 维混淆了样本，或与送入的 batch 不符",
    "next-batch-shape-mismatch": "以动态 batch 轴导出，或按导出时的 batch 送入",
    "cause-custom-op-missing": "图中有运行时没有实现的算子",
    "next-custom-op-missing": "提供该算子的库、替换该算子，或将其移到网络之后；然后重新比对",
    "cause-double-normalization": "归一化已包含在模型内，调用方又做了一次",
    "next-double-normalization": "去掉其中一次：调用方的，或模型中的节点（norm_type: no_preprocess）",
    "cause-input-channel-swap": "输入的通道顺序不同，例如 BGR 与 RGB 互换",
    "next-input-channel-swap": "修正颜色转换或 input_type_train / input_type_rt，然后重新比对",
    "cause-input-scale-255": "输入的值域不同，例如 0-255 与 0-1",
    "next-input-scale-255": "只在一处除以 255：数据加载，或模型自带的前处理",
    "cause-layout-nhwc": "HWC 的缓冲区被当作 CHW 读取",
    "next-layout-nhwc": "用 transpose (0, 3, 1, 2) 而不是 reshape，或将输入声明为 NHWC",
    "cause-missing-decode": "检测框解码（grid、stride、anchor、exp）不在待测侧的图中",
    "next-missing-decode": "把解码放入这一侧的后处理，或放入导出的模型",
    "cause-missing-mean-scale": "基准侧做了 mean 和 scale，待测侧没有",
    "next-missing-mean-scale": "转换时设置 mean_value 和 scale_value，或在调用方做归一化",
    "cause-missing-sigmoid": "最后的激活函数只在一侧有",
    "next-missing-sigmoid": "只做一次，放在图中或后处理中；对 logits 取阈值时应为 logit(threshold)",
    "cause-nan-output": "待测侧出现 NaN 或无穷大",
    "next-nan-output": "查看首个出现它的张量：为除法加保护，把掩码中的 -inf 换成有限数值",
    "cause-nms-topk-cap": "一侧保留的检测框较少：抑制之前或之后的数量上限不同",
    "next-nms-topk-cap": "两侧使用相同的 top-k、检测框数量上限和阈值",
    "cause-noncontiguous-input": "拷贝视图时没有考虑其 stride：字节按另一种轴顺序排列",
    "next-noncontiguous-input": "在传入之前把数组变为连续（np.ascontiguousarray、.contiguous()）",
    "cause-norm-semantics": "归一化层作用的轴或分组不同",
    "next-norm-semantics": "把归一化层按其原算子导出，并比对轴和分组",
    "cause-numeric-noise": "差异来自 float32 求和顺序不同",
    "next-numeric-noise": "无需处理；让限值随张量大小调整",
    "cause-output-transposed": "输出的轴顺序与使用方读取的不同",
    "next-output-transposed": "在后处理中或图的末尾做转置",
    "cause-pooling-ceil-mode": "某个池化的 ceil_mode 不同",
    "next-pooling-ceil-mode": "导出时设置 ceil_mode，或做补齐使两侧尺寸相同",
    "cause-pooling-count-include-pad": "平均池化在边缘处除以的面积不同",
    "next-pooling-count-include-pad": "设置 count_include_pad，或显式补齐后以无补齐方式池化",
    "cause-resize-coordinate-mode": "resize 的像素取点方式不同",
    "next-resize-coordinate-mode": "导出时明确写出 align_corners 和目标平台支持的模式",
    "cause-resize-letterbox-mismatch": "一侧保持图像宽高比并填充边带，另一侧直接拉伸",
    "next-resize-letterbox-mismatch": "训练、校准和板卡使用同一套 letterbox（填充值、位置、舍入）",
    "cause-softmax-axis": "softmax 作用的轴不同",
    "next-softmax-axis": "以 opset 13 或更高版本导出，或转置使该轴为最后一轴",
    "cause-topk-order": "得分相同的结果顺序不同",
    "next-topk-order": "无需处理；按集合比对，或得分相同时按索引排序",
    "cause-trace-constant-baked": "依赖输入的值被记录成了常量",
    "next-trace-constant-baked": "用张量算子计算它，或对该分支使用 script；用两种形状测试导出的模型",
    "cause-train-mode-export": "一侧以训练模式运行：使用了 batch 统计量，或 dropout 生效",
    "next-train-mode-export": "导出之前和计算基准侧之前都要调用 eval()",
    "cause-weights-mismatch": "待测侧由另一套权重生成",
    "next-weights-mismatch": "用评测时的 checkpoint 重新导出（EMA 或原始权重、epoch、完整加载）",
    "cause-bn-fold-error": "BN 融合到卷积时出错",
    "next-bn-fold-error": "不做该融合，融合前复制共享权重，并把两个 ONNX 文件交给厂商",
    "cause-constant-fold-bug": "图中的常量部分被折叠成错误的值",
    "next-constant-fold-bug": "跳过该 pass，并把两个 ONNX 文件交给厂商",
    "cause-graph-fusion-error": "融合或改写改变了图的计算结果",
    "next-graph-fusion-error": "对该节点跳过该 pass，并把两个 ONNX 文件交给厂商",
    "cause-norm-fusion-error": "归一化层融合时用了不同的 epsilon、轴或 gamma",
    "next-norm-fusion-error": "不做该融合，或把归一化层作为一个算子导出",
    "cause-output-permuted": "输出的顺序改变，而读取方按索引取用",
    "next-output-permuted": "按名称取输出，并在加载模型时核对名称",
    "cause-accumulator-saturation": "乘积之和在 16 位处饱和",
    "next-accumulator-saturation": "把权重的范围缩小一位，或在累加位宽更大的环境运行",
    "cause-calibration-not-representative": "真实数据的值超出校准时见过的范围",
    "next-calibration-not-representative": "用覆盖实际场景的样本重新校准，再查看截断比例",
    "cause-calibration-preprocess-mismatch": "校准数据的前处理与实际运行时的数据不同",
    "next-calibration-preprocess-mismatch": "用实际运行时的前处理生成校准数据，然后重新校准",
    "cause-constant-output": "待测侧的输出不随输入变化",
    "next-constant-output": "查找首个输出恒定的层，并查看它得到的范围",
    "cause-error-accumulation": "许多层各贡献一点误差，没有单独一层能解释损失",
    "next-error-accumulation": "提高整个部分的精度（INT16），或做 QAT；不要逐个追查节点",
    "cause-fp16-overflow": "有值超过半精度的 65504",
    "next-fp16-overflow": "该节点保持单精度，或缩小其输入的数值",
    "cause-fusion-blocked": "卷积的输出另有使用方，因此在激活之前就被量化",
    "next-fusion-blocked": "让该使用方改取激活的输出，使两者融合",
    "cause-int8-wraparound": "整数溢出后发生回绕，而不是饱和",
    "next-int8-wraparound": "把该节点交给厂商；在此之前先在它前面做 clamp",
    "cause-mixed-range-concat": "数值大小相差很大的几部分共用一个 scale，小的部分没有可用的量化级",
    "next-mixed-range-concat": "去掉 Concat，将各部分作为独立输出，或事先统一其范围",
    "cause-outlier-range": "少数值拉大了范围，绝大多数值的量化级不足",
    "next-outlier-range": "对该张量用百分位校准、做 clamp，或使用 INT16；去掉异常样本",
    "cause-precision-fallback": "张量得到的位宽少于所要求的",
    "next-precision-fallback": "在编译日志中查看该要求为何被放弃，并修改节点使其得到满足",
    "cause-quant-params-mismatch": "图中的 scale 与附带文件中的不同",
    "next-quant-params-mismatch": "图和参数取自同一次构建",
    "cause-quant-params-missing": "定点模型中有张量没有 scale",
    "next-quant-params-missing": "用实际编译的图重新校准",
    "cause-quantization-noise": "差异就是舍入为整数所产生的",
    "next-quantization-noise": "无需处理；将其作为基线",
    "cause-saturation": "输出中超出校准范围的值被截断",
    "next-saturation": "用能达到输出范围的样本校准，或放宽该阈值",
    "cause-sensitive-nodes": "少数节点造成了大部分损失",
    "next-sensitive-paste": "在 quant_config 中为这些节点设置 {precision}，再看得分：{fragment}",
    "next-sensitive-then": "在 quant_config 中为这些节点设置 {precision}，再看得分：{fragment}；仍不达标则试 {others}",
    "next-sensitive-nodes": "为这些节点设置 INT16（或该平台具备的精度），再看得分",
    "cause-small-signal-lost": "步长由不变的大分量决定，而变化的部分比步长还小",
    "next-small-signal-lost": "把常量部分移出图、改为预测差值，或对输出使用 INT16",
    "cause-threshold-crossing": "张量一致；决策翻转是因为其得分落在阈值附近的噪声范围内",
    "next-threshold-crossing": "无需处理；按整个数据集的得分判定",
    "cause-weight-range-imbalance": "同一权重的各通道大小相差很大，却共用一个 scale",
    "next-weight-range-imbalance": "对权重做逐通道量化，或先均衡前面的层",
    "cause-comparator-layout": "dump 的轴顺序不同；数值是相同的",
    "next-comparator-layout": "在比对时转置；不要改动模型",
    "cause-dequant-scale-mismatch": "输出乘的不是它自己的 scale",
    "next-dequant-scale-mismatch": "按输出的名称查找 scale",
    "cause-device-op-error": "有一个算子在设备上计算错误",
    "next-device-op-error": "换到别处运行或替换该算子，并把它的输入和输出发给厂商",
    "cause-double-dequantization": "输出已是浮点，又乘了一次 scale",
    "next-double-dequantization": "运行时返回浮点的地方，去掉这次乘法",
    "cause-dtype-misread": "输出的字节按错误的类型读取",
    "next-dtype-misread": "从张量属性读取类型，并在后处理之前转换",
    "cause-input-mismatch": "两侧送入的数据不同",
    "next-input-mismatch": "两侧送入同一个张量，并先比对它",
    "cause-input-offset-128": "输入相差 128：int8 与 uint8 混用，或用了 *_128 类型",
    "next-input-offset-128": "运行时要求 int8 时减去 128，或选用不带它的输入类型",
    "cause-input-permuted": "形状相同的输入送入顺序不同",
    "next-input-permuted": "按名称送入输入",
    "cause-nv12-conversion-loss": "差异就是转换为 NV12 时的损失",
    "next-nv12-conversion-loss": "无需处理；两侧都用经过 NV12 的图像评测",
    "cause-nv12-stride-padding": "NV12 缓冲区的行 stride 与读取时所用的不同",
    "next-nv12-stride-padding": "按运行时给出的 stride 逐行拷贝",
    "cause-nv12-uv-order": "U 和 V 的交错顺序相反（NV21）",
    "next-nv12-uv-order": "交换 U 和 V，或将输入声明为 NV21",
    "cause-output-layout-nhwc": "设备返回 NHWC，却按 NCHW 读取",
    "next-output-layout-nhwc": "向运行时查询排布，并做转置",
    "cause-output-stride-padding": "输出的行带有补齐，却按没有补齐读取",
    "next-output-stride-padding": "按运行时给出的 stride 读取",
    "cause-reference-invalid": "基准侧本身不可信",
    "next-reference-invalid": "重新生成基准侧，之后再比对",
    "cause-rounding-lsb": "少数元素相差一个步长：恰在中间的值舍入方式不同",
    "next-rounding-lsb": "无需处理；将限值设为一个步长",
    "cause-tail-int32-undequantized": "输出是整数，从未乘过 scale",
    "next-tail-int32-undequantized": "在后处理中乘以尾部的 scale（逐通道），或保留反量化节点",
    "cause-wrong-input-kind": "图像缓冲区送进了张量输入，或相反",
    "next-wrong-input-kind": "按输入的类型送入：nv12 给各平面，featuremap 给张量",
    "cause-environment-drift": "待测侧的模型在此处的数值与录制数据不同",
    "next-environment-drift": "固定 runner 和运行时的版本，或在此处重新录制",
    "cause-incomplete-evidence": "必须比对的内容不存在",
    "next-incomplete-evidence": "重新录制缺少的一侧或样本；在此之前不能下任何结论",
    "cause-invalid-test-input": "输入与真实输入不像；在真实输入上两侧一致",
    "next-invalid-test-input": "用录制的样本比对",
    "cause-regression-vs-baseline": "待测侧比其基线差",
    "next-regression-vs-baseline": "逐节点比对这两次构建",
    "cause-stale-artifact": "评测所用的不是构建出的待测侧产物",
    "next-stale-artifact": "将结果与产物的摘要绑定，然后重新评测",
    "cause-toolchain-version-mismatch": "模型编译时的版本或 march 与运行时的不同",
    "next-toolchain-version-mismatch": "用与板卡运行时匹配的工具链编译，或更新运行时",
    "cause-worst-sample-hidden": "平均值看上去良好，但有一个样本偏差很大",
    "next-worst-sample-hidden": "按最差样本判定，并先查看它",
    "who-user": "处理方：你",
    "who-vendor": "处理方：厂商",
    "who-user-vendor": "处理方：先由你处理，再找厂商",
    "who-nobody": "无需处理",
    "untouched-pytorch-onnx": "不要动：校准、QAT",
    "untouched-onnx-optimized": "不要动：校准数据、scale、QAT",
    "untouched-quantized-board": "不要动：学习率、FakeQuant、observer、QAT 训练轮数",
    "cause": "原因",
    "explain-passed": "PASS：没有需要解释的差异",
    "explain-none": "没有找到原因",
    "explain-none-ruled-out": "没有找到原因；已试验并排除：{codes}",
    "explain-equal": "PASS：输出一致；最大差异为值域的 {residual}",
    "explain-nothing": "FAIL：没有找到原因；输出相差值域的 {residual}",
    "explain-unloaded": "FAIL：无法加载待测侧，且没有找到原因",
    "explain-nothing-compared": "ERROR：没有可比对的内容",
    "explain-confirmed": "已证实",
    "explain-suspected": "疑似",
    "explain-about": "涉及：{subjects}",
    "explain-next": "首先：{act}",
    "explain-ruled-out": "已试验并排除：{codes}",
    "explain-inferred": "没有 link.json；环节的类型由目录中的内容推断",
    "explain-out-of-time": "试验未全部完成，时间已用尽；请用 --seconds 给更多时间",
    "explain-rule-failed": "对 {codes} 的查找提前结束，{kind}：{reason}",
    "evidence-no-folder": "{path} 不是目录；请给出含两侧输入、输出或模型的目录",
    "evidence-empty": "{path} 中没有证据目录应有的内容；至少应有以下之一：{wanted}",
    "evidence-unreadable": "无法读取 {path}，已略过：{reason}",
    "evidence-no-object": "{path} 不是 JSON 对象，已略过",
    "evidence-tensor-damaged": "{path}：张量“{tensor}”已损坏，已略过：{reason}",
    "evidence-no-numbers": "{path}：张量“{tensor}”的类型为 {dtype}，应为数值；已略过",
    "evidence-twice": "{path} 中有两个名为“{tensor}”的张量；略过第二个",
    "evidence-too-large": "{path}：“{tensor}”有 {bytes} 字节，超过目录的上限 {limit_bytes}；已略过",
    # --- files of the vendor's tools
    "vendor-too-large": "{path} 大于 {limit} MB，这些工具的日志不会这么大；请给出文件本身，或其中相关的部分",
    "vendor-another-file": (
        "{path} 不是 {tool} 写出的文件：其中没有 {wanted}，开头为：{found}；请给出该工具自身的输出，或包含这类行的摘录"
    ),
    "vendor-no-json": "{path} 不是 {tool} 的完整 JSON 文件：{reason}；请重新拷贝，或重新运行该工具",
    "vendor-form": "{path} 的 {key} 为 {found}，应为 {wanted}；请给出 {tool} 写出的文件",
    "compiled-no-folder": "无法读取目录 {folder}：{reason}；请给出 hb_compile 的 working_dir",
    "compiled-none": (
        "{folder} 中没有 {wanted}，也没有 hb_compile 以该前缀生成的其他模型；现有前缀：{prefixes}；请给出 hb_compile "
        "的 working_dir 和 output_model_file_prefix"
    ),
    "compiled-ambiguous": "{folder} 中有多次编译的文件；请说明使用哪个前缀：{prefixes}",
    "compile-yaml-none": (
        "{path} 不是 hb_compile 的配置文件：其中有 {found}，应至少有 {wanted} 之一；请给出 hb_compile -c 后面的那个文件"
    ),
    "compile-yaml-count": "{path}：{key} 有 {found} 项，而输入有 {inputs} 个；请每个输入给一项，以 ; 分隔",
    "compile-yaml-value": "{path}：{key} 为 {found}，应为：{wanted}；请改正，或给出 hb_compile 接受的文件",
    "verifier-no-verdict": (
        "{path} 中既没有 hb_verifier 的判定语句，也没有余弦相似度表：运行没有结束，或摘录中缺少；其模型：{models}；"
        "请给出完整日志，或重新运行 hb_verifier"
    ),
    "verifier-nothing-compared": (
        "{path}：hb_verifier 没有比对任何内容；确认两个模型的输出名称一致，且输入是模型所要求的"
    ),
    "verifier-layout": (
        "{path} 中 hb_verifier 的表格形式未知：{found}；应有列 {wanted}；请把该文件交给 driftgate 的维护者"
    ),
    "verifier-contradiction": "{path} 在同一次运行中有 hb_verifier 的两种判定，既通过又失败；请给出单次运行的日志",
    # --- reports
    "loss-segment": "{score}：第 {segment} 段（{reference} → {candidate}）损失 {loss}",
    "loss-segment-eroded": (
        "{score}：第 {segment} 段（{reference} → {candidate}）损失 {loss}，并消耗了所丢失部分裕量的 {share} %"
    ),
    "flips-told": "首个阶段与最后阶段之间有 {count} 个决策改变；最差的 {shown} 个及其裕量：",
    "performance": "速度",
    "performance-next": (
        "在板卡上没有其他任务、频率固定、线程和核相同的条件下重新测量；然后把此构建的预估值（hb_compile 的 perf 报告）"
        "与前一构建的对照。"
    ),
    "details-performance": "板卡上的速度和内存",
    "column-core": "核",
    "column-runs": "运行次数",
    "column-frames": "帧数",
    "column-latency": "延迟",
    "column-fps": "帧率",
    "column-memory": "内存",
    "column-estimate": "静态预估",
    "column-source": "来源",
    "details-losses": "得分在哪里损失",
    "column-item": "条目",
    "situation-fine": (
        "所有节点一致（已比对 {nodes} 个，至少 {least} dB）：网络没有问题；请对照训练检查评测的前处理（归一化、"
        "颜色空间、轴顺序）"
    ),
    "situation-all-off": (
        "从第一个节点起几乎所有节点都偏离（{nodes} 个中有 {count} 个低于 {least} dB）：输入有误或形式不对；检查其来源、"
        "格式和前处理"
    ),
    "situation-some-off": "{nodes} 个节点中有 {count} 个低于 {least} dB：问题在某个阶段或算子；请查看首个偏离节点",
    "nodes-none": "没有节点的误差超出其精度可解释的范围（已比对 {pairs} 对）：差异是累积的，或随输入带入",
    "nodes-nothing": "没有节点可以与其对应节点比对",
    "first-node": "首个偏离节点",
    "node-excess": "自身误差是其精度可解释误差的 {excess} 倍",
    "node-total": "误差在此处升至 {total} dB；自身误差未知",
    "node-clipped": "基准侧 {share} % 的值在其校准范围之外",
    "node-sqnr": "自身 SQNR {own} dB，总 SQNR {total} dB",
    "node-channels": "最差通道 {channels}",
    "node-region": "节点 {nodes} 之一",
    "node-unsure": "配对依据 {how}，确定度 {certainty}",
    "node-vendor": "厂商工具给出的余弦相似度 {cosine}",
    "nodes-vendor": "厂商工具给出的数值，并非此处测得：{source} 的 {column} 列，{count} 个节点，{unread} 行无法读取",
    "nodes-vendor-none": "厂商工具给出的各节点余弦相似度都不低于 {limit}",
    "nodes-vendor-title": "厂商工具给出低余弦相似度的节点",
    "node-table-none": (
        "{path}：没有找到带余弦相似度的节点表；节点名称旁应有 {wanted} 之一的列，实际有 {found}：请给出 hb_verifier 或 "
        "hb_compile 的完整日志、node_info.csv，或 QuantAnalysis 的 compare_per_layer_out"
    ),
    "column-cosine": "余弦相似度（厂商）",
    "first-vendor-node": "厂商表格中首个低于限值的节点",
    "nodes-title": "误差超出其精度可解释范围的节点",
    "nodes-cost": "{samples} 个样本上 {pairs} 对，{unpaired} 个张量未配对，{runs} 次运行，{seconds} s",
    "column-node": "节点",
    "column-tensor": "张量",
    "column-own": "自身 SQNR (dB)",
    "column-total": "总 SQNR (dB)",
    "column-excess": "自身误差 / 可解释误差",
    "column-channels": "通道",
    "column-clipped": "超出校准范围",
    "template-absent": "无法读取模板 {path}：{reason}",
    "template-empty": "模板 {path} 没有输出任何内容；请让它继承 comment.md.j2 并修改其中的块",
    "template-long": "模板 {path} 超过 {limit_bytes} 字节；模板应只有一页文本",
    "template-wrong": "模板 {path}，第 {line} 行：{reason}；可用的块和值见 docs/comment-template.md",
    "comment-long": "略去所有可略去的内容后，评论仍超过 {limit} 个字符；请给它更大的篇幅，或缩短模板并检查其中的循环",
    "summary-long": "略去所有可略去的内容后，作业摘要仍超过 {limit_bytes} 字节",
    "comment-commit": "提交",
    "comment-run": "运行 {number}",
    "comment-attempt": "运行 {number}，第 {attempt} 次尝试",
    "comment-counts": "{failed} 个失败，{errors} 个没有结果，{passed} 个通过",
    "comment-link-summary": "作业摘要",
    "comment-bundle": "证据：bundle.zip",
    "comment-link-archive": "报告归档",
    "comment-details": "完整输出",
    "comment-shortened": "为放入评论已作精简。略去：",
    "comment-whole": "完整内容在报告的 results.json 中。",
    "comment-whole-linked": "完整内容在作业摘要和报告的 results.json 中。",
    "left-out-lines": "折叠的表格和日志共 {count} 行",
    "left-out-beside": "{count} 个被测网络除表格外的内容",
    "left-out-pages": "{count} 个被测网络的页面",
    "left-out-rows": "总览中 {count} 个通过的被测网络",
    "left-out-unsound": "总览中 {count} 个失败或没有结果的被测网络",
    "bars-each": "{output} 的最大绝对误差，逐样本（{count}）；最高 {highest}",
    "bars-groups": "{output} 的最大绝对误差，逐样本（{count}，每 {size} 个取最差者画一条）；最高 {highest}",
    "bars-unknown": "? 表示没有可比对的内容",
    "annotation-title": "{subject}: {check} {result}",
    "annotation-optional": "{said}；策略不要求",
    "annotation-more": "类似的还有 {count} 个；全部见作业摘要",
    "headline-fail": "FAIL 于 {check}",
    "headline-error": "ERROR 于 {checks}",
    "headline-nothing": "ERROR：没有判定任何内容",
    "headline-pass": "PASS {passed}/{total} 项",
    "headline-pass-skipped": "PASS {passed}/{total} 项（{skipped} 项未要求）",
    "headline-pass-optional": "PASS {passed}/{total} 项（{skipped} 项未要求，{optional} 项未通过且不作要求）",
    "overall-fail": "FAIL：{total} 个被测网络中 {failed} 个失败",
    "overall-error": "ERROR：{total} 个被测网络中 {errors} 个没有结果",
    "overall-pass": "PASS：全部 {total} 个被测网络",
    "overall-nothing": "ERROR：没有判定任何内容",
    "row-behind": "位于首个失败之后；数值见下文",
    "row-optional": "策略不要求",
    "first-failure": "首个失败：{check}",
    "not-established": "无法得出结论：{check}",
    "not-investigated": "未排查：没有在此环节做试验，因此没有给出原因",
    "failure-more": "此环节还有 {count} 个输出超出限值；全部见下面的表格",
    "next": "下一步：",
    "limit": "限值",
    "where-sample": "样本",
    "where-channel": "通道",
    "worst-at-sample": "最差样本",
    "score": "得分",
    "score-everywhere": "各阶段均为 {score}（{stages} 个）",
    "score-at": "{stage} 为 {score}",
    "score-from-to": "{first} 至 {last} 为 {score}",
    "measured-on-real": "{count} 个真实样本 · 策略 {policy} · 计划 {plan}",
    "measured-on-calibration": "{count} 个校准集样本 · 策略 {policy} · 计划 {plan}",
    "measured-on-random": "{count} 个随机样本，不能证明 PASS · 策略 {policy} · 计划 {plan}",
    "measured-without-facts": "判定时没有事实数据 · 策略 {policy} · 计划 {plan}",
    "lines-left-out": "已精简：另有 {count} 行在 results.json 中。",
    "page-cut": "各被测网络的页面已略去，因为合在一起超过 GitHub 的显示长度；完整内容在 results.json 中。",
    "plan-digest": "计划",
    "details-judged": "全部环节和限值",
    "details-behind": "首个失败之后：已测量，不追责",
    "details-metrics": "各环节的指标",
    "details-scores": "各阶段的得分",
    "details-environments": "环境和版本",
    "details-runs": "运行和计划",
    "details-notes": "备注",
    "column-subject": "被测网络",
    "column-target": "目标平台",
    "column-result": "结果",
    "column-scores": "得分",
    "column-check": "检查",
    "column-value": "最差值",
    "column-limit": "限值",
    "column-where": "位置",
    "column-note": "备注",
    "column-link": "环节",
    "column-kind": "类型",
    "column-output": "输出",
    "column-origin": "设定来源",
    "column-dead": "死通道",
    "column-worst-sample": "最差样本",
    "column-stage": "阶段",
    "column-backend": "后端",
    "column-run": "运行",
    "column-samples": "样本数",
    "column-seconds": "秒",
    "column-artifact": "产物",
    "column-environment": "环境",
    "column-provider": "执行提供程序",
    "column-level": "级别",
    "column-threads": "线程",
    "column-cpu": "CPU",
    "column-board": "板卡",
    "column-versions": "版本",
    "kind-exact": "精确",
    "kind-compiled": "编译",
    "kind-equivalent": "等价",
    "kind-stepped": "步长级",
    "kind-lossy": "有损",
    "origin-default": "默认",
    "origin-config": "配置",
    "origin-policy": "策略",
    "origin-derived": "推导",
    "run-passed": "完成",
    "run-refused": "拒绝加载",
    "run-error": "出错",
    "run-partial": "部分完成",
    "criterion-ulp": "浮点误差",
    "criterion-range": "误差 / 值域",
    "criterion-decimals": "最大绝对误差",
    "criterion-integers": "不相等的整数",
    "criterion-lsb": "最大误差",
    "criterion-cosine": "余弦相似度",
    "criterion-centred-cosine": "去均值余弦相似度",
    "criterion-bulk-cosine": "剔除离群值的余弦相似度",
    "criterion-norm-ratio": "范数比",
    "criterion-max-abs": "最大绝对误差",
    "criterion-sqnr": "SQNR",
    "criterion-dead-channels": "死通道",
    "criterion-score-drop": "得分下降",
    "criterion-score-declared": "得分",
    "criterion-latency-ms": "延迟",
    "criterion-fps": "帧率",
    "criterion-latency-rise": "延迟上升",
    "criterion-fps-drop": "帧率下降",
    "criterion-memory-mib": "内存",
    "metric-cosine": "余弦相似度",
    "metric-centred-cosine": "去均值余弦相似度",
    "metric-bulk-cosine": "剔除离群值的余弦相似度",
    "metric-norm-ratio": "范数比",
    "metric-max-abs": "最大绝对误差",
    "metric-mean-abs": "平均绝对误差",
    "metric-range-error": "误差 / 值域",
    "metric-sqnr": "SQNR",
    "metric-lsb": "最大误差",
    "unit-ulp": "ulp",
    "unit-lsb": "LSB",
    "unit-sqnr": "dB",
    "unit-integers": "%",
    "unit-score-drop": "%",
    "unit-latency-ms": "ms",
    "unit-fps": "FPS",
    "unit-latency-rise": "%",
    "unit-fps-drop": "%",
    "unit-memory-mib": "MiB",
    "broken-limit": "{criterion}：{value}，要求 {relation} {limit}",
    "case-failed": "检查失败；原因见 summary.md",
    "case-error": "无法得出结论；原因见 summary.md",
    "case-behind": "位于首个失败 {check} 之后；单独判定为 {result}",
    "case-skipped": "未要求",
    "templates-missing": "以下位置都没有报告模板：{places}；请重新安装 driftgate",
    "output-name": "{name} 不能用作输出名称；只用字母、数字、_ 和 -",
    "output-delimiter": "输出 {name} 的值含有随机分隔符；没有写出，因为它可能变成另一个输出",
    # --- github
    "variable-absent": "没有设置 {name}；GitHub 在每次运行时都会设置它，例如 {wanted}",
    "variable-garbled": "{name} 为 {found}，应形如 {wanted}",
    "event-unnamed": "没有设置 GITHUB_EVENT_PATH；请在工作流中运行，或用 --event-path 给出有效负载",
    "event-absent": "无法读取事件的有效负载 {path}：{reason}",
    "event-garbled": "事件的有效负载 {path} 不是 JSON 对象；请给出 GITHUB_EVENT_PATH 所指的文件",
    "event-field": "{event} 的有效负载缺少 {field}，或该处是其他内容；请给出该事件的有效负载",
    "github-token-garbled": "令牌中有空格、换行或令牌不会有的其他字符；请重新设置",
    "github-token-refused": "GitHub 拒绝该令牌（{reason}）；令牌有误或已过期，请重新设置",
    "github-not-allowed": (
        "该令牌无权 {method} {path}：{reason}；请给作业 `pull-requests: write` 权限（来自 fork 的运行始终没有）"
    ),
    "github-not-found": "GitHub 上没有 {path}（{method}：{reason}），或该令牌看不到它；检查作业的权限",
    "github-gone": "{path} 已删除或已停用（{method}：{reason}）",
    "github-invalid": "GitHub 不接受此 {method} {path}：{reason}",
    "github-refused": "GitHub 对 {method} {path} 应答 {status}：{reason}",
    "github-reply-lost": "{method} {path} 的应答丢失（{reason}）；不知道是否已执行",
    "github-postponed": "GitHub 推迟了 {method} {path}：{reason}",
    "github-attempts": "{host} 在 {attempts} 次尝试中都没有处理请求：{reason}；请稍后重试",
    "github-patience": "{host} 要求再等 {seconds} s（{reason}），超过本次运行的 {budget} s；请稍后重试",
    "github-other-host": "{wanted} 把此请求转到 {found}，后者不会被访问；检查 GITHUB_API_URL",
    "github-redirects": "{host} 对请求的重定向超过 {limit} 次；检查 GITHUB_API_URL",
    "github-certificate": "{host} 的证书不受信任，或受信任证书的文件不存在；请在 REQUESTS_CA_BUNDLE 中指定",
    "github-request": "无法请求 {host}（{reason}）；检查 GITHUB_API_URL 和代理变量",
    "github-too-long": "{host} 的应答超过 {limit_bytes} 字节；检查 GITHUB_API_URL",
    "github-no-json": "{path} 的应答不是 JSON；检查 GITHUB_API_URL 和代理",
    "github-no-list": "{path} 的应答不是列表；检查 GITHUB_API_URL",
    "github-pages": "{path} 超过 {limit} 页，或页面重复",
    "pull-event": "事件 {event} 不属于任何拉取请求",
    "pull-none": "没有 head 为 {sha} 的未关闭拉取请求",
    "pull-stale": "拉取请求 #{number} 已从 {sha} 更新到 {head}；这些结果不是其 head 的",
    "pull-several": "提交 {sha} 是多个拉取请求（{numbers}）的 head；不知道指的是哪一个",
    "comment-author": "该令牌的评论由 {found} 发表，而不是 {wanted}；请给出 --login {found}",
    "comment-unsettled": "#{number} 上的评论在 {rounds} 轮内没有稳定下来；请给这些作业设置 concurrency 组",
    "comment-created": "已在 #{number} 发表评论（{requests} 次请求）：{url}",
    "comment-updated": "已更新 #{number} 上的评论（{requests} 次请求）：{url}",
    "comment-unchanged": "#{number} 上的评论内容已是如此（{requests} 次请求）：{url}",
    "comment-superseded": "#{number} 上的评论来自比 {run} 更新的运行，予以保留（{requests} 次请求）：{url}",
    "comment-deleted": "已删除 #{number} 上的评论（{requests} 次请求）",
    "comment-absent": "#{number} 上没有评论，也不需要（{requests} 次请求）",
    "comment-overtaken": "另一次运行在同时写入；请给这些作业设置 concurrency 组",
    "comment-never": "没有评论：模式为 never",
    "comment-none": "没有评论：",
    "comment-no-token": "{names} 中都没有令牌；请传入 `github.token`",
    # --- commands
    "recorded": "保存了 {count} 份录制数据，样本 {samples}",
    "leg-missing": "作业段 {leg} 没有报告",
    "leg-other-plan": "作业段 {leg} 送来的内容属于另一份计划：产物、样本、标签或配置在那里不同",
    "leg-stale": "作业段 {leg} 送来的内容属于 {found}，而此处是 {wanted}",
    "leg-unmarked": "作业段 {leg}：{folder} 中没有 leg.json，因此不知道它是什么",
    "leg-unreadable": "作业段 {leg}：无法读取 {folder}：{reason}",
    "omitted-on-request": "已略过：{reason}",
    "pack-board": "任务包中板卡 {board} 的描述有误：{reason}",
    "pack-outside": "{path} 指定了 {file}，但该文件不在其中；没有使用其任何内容",
    "plan-other": (
        "{path} 的作业段 {leg} 属于另一份计划，与此配置生成的不同：产物、样本、标签或配置有差异；"
        "计划和各作业段必须使用相同的文件"
    ),
    "report-nothing": "没有可报告的内容：请给出分片，或用 --plan 给出应有内容的 plan.json",
    "unchanged-other": "{path} 中没有计划所说未改动的 {subject}（{target}）的事实数据；请重新生成计划",
    "unchanged-since": "自运行 {run} 起未改动：没有再次运行",
    "plan-packed": "已打包 {leg}：{count} 个样本",
    "run-no-leg": "请说明是哪个作业段：用 --leg 给出 `driftgate plan` 列出的 id，或用 --pack 给出板卡作业段的目录",
    "run-pack-alone": "--pack 已包含全部信息：请去掉 --leg 和 --plan",
    "plan-same-name": "作业段 {one} 和 {other} 作为文件名相同；请给其中一个被测网络改名",
    "plan-too-many-legs": (
        "有 {found} 个作业段，而 CI 的 matrix 最多 {most} 个：请调低 --host-legs 或 --board-legs，或减少被测网络"
    ),
    "planfile-garbled": "{path} 不是 driftgate 写出的内容：{reason}",
    "planfile-unreadable": "无法读取 {path}：{reason}",
    "recording-absent": "作业段 {leg}，{stage}：{sample} 的录制数据不存在",
    "recording-other": "作业段 {leg}，{stage}：{sample} 的录制数据与作业段所记的不符：{reason}",
    "recording-budget": "样本 {sample} 没有保存：录制数据的空间不足",
    "recording-failed": "没有录制数据：{reason}",
    "badcase-unknown": "badcase {names} 不在 {count} 个样本中；请给出数据集或配置档中的 id",
    "manifest-profile": "  {name}：前 {count} 个",
    "progress-tensors": "正在写出张量",
    "samples-folder-taken": "{path} 不为空；请给 --materialise 一个新目录，以免其中残留旧样本",
    "samples-materialised": "已将 {count} 个样本的张量写入 {path}",
    "samples-no-manifest": "被测网络 {subjects} 没有指定样本清单；请把 samples.manifest 设为要写出的文件",
    "samples-no-raw": "被测网络 {subject} 没有可生成样本清单的 raw 样本；请设置 samples.raw",
    "samples-one-folder": "--materialise 只写出一个数据集的张量，而此处有 {count} 个；请用 --subject 选择",
    "samples-said-twice": "配置文件中已有 {options}；请去掉这些选项，或去掉 --config",
    "samples-shared": "{first} 和 {second} 为不同的样本指定了同一个样本清单 {manifest}；请各用各的",
    "samples-subject": "--subject 是从配置文件中选择的；请与 --config 一起给出",
    "samples-which": "请给出 RAW，或用 --config 给出指定了样本的配置文件，二者取一",
    "nodes-untappable": "逐节点比对需要两个可抽取中间张量的产物；{stages} 不都是：请给出 ONNX 文件",
    "progress-board": "正在用板卡排查 {link}",
    "progress-verifier": "正在对 {link} 运行 hb_verifier",
    "verifier-absent": (
        "无法启动 {tool}：{reason}；请在 defaults.verifier.command 下指定 OpenExplorer 3 环境的 hb_verifier，或去掉该项"
    ),
    "verifier-hangs": "{tool} 在 {seconds} s 内没有结束，已被终止；请在 defaults.verifier.timeout 下给更多时间",
    "verifier-died": "{tool} 以退出码 {exit_code} 结束，没有任何输出",
    "verifier-cosines": "hb_verifier {version} 在最差样本上按余弦相似度比对了此环节的 {count} 个张量：厂商的数值",
    "verifier-consistent": "hb_verifier {version} 在最差样本上判定两个文件一致：厂商的判定，作为第二意见",
    "verifier-inconsistent": (
        "hb_verifier {version} 在最差样本上判定两个文件不一致（{outputs}）：厂商的判定，作为第二意见"
    ),
    "progress-explain": "正在查找 {link} 的原因",
    "explained": "{link}：有证据支持的原因共 {count} 个",
    "explain-samples-differ": "{link}：无法在两侧重新运行其样本",
    "progress-nodes": "正在比对 {link} 的节点",
    "investigated": "已排查 {link}，用时 {seconds} s",
    "size-form": "{found} 不是大小；应为带 KiB、MiB 或 GiB 的数值，例如 512MiB",
    "init-exists": "{path} 已存在；请用 --force 覆盖，或用 --out 另给名称",
    "init-no-folder": "{folder} 不是目录；请给出 hb_compile 工作过的目录",
    "init-nothing": "{folder} 中没有厂商的文件；应有以下结尾的文件名：{endings}",
    "init-yaml-several": "多个 YAML 文件都指向构建 {prefix}，但内容不同：{paths}；均未采用，请用 --yaml 指定一个",
    "init-yaml-other": "{path} 中的前缀为 {found}，而目录中有 {prefixes}；仍采用其内容",
    "init-log-other": "{path} 是 {found} 的日志，不是 {prefix} 的，已跳过",
    "init-march-folder": "{folder} 以 {target} 命名，而其中的模型是为 march {march} 构建的",
    "init-conflict": "{what}：{source} 中为 {found}，{other_source} 中为 {other}；请查明文件是用哪一个构建的",
    "init-undeclared": "输入 {input} 运行时为 {rt}，训练时为 {train}，driftgate 不做此转换：请给出 samples.runtime",
    "init-written": "已为 {subjects} 写出 {path}；请填写带 <…> 的行",
    "internal-error": "内部错误，{kind}：{reason}；请加 --verbose 重新运行并报告",
    "stopped": "已停止；没有写出任何内容",
    "leg-started": "计划 {plan} 的作业段 {leg}：{stages}",
    "leg-run": "{stage}：{outcome}，{samples} 个样本，用时 {seconds} s",
    "leg-unknown": "此计划中没有作业段 {leg}；其作业段有：{known}",
    "outcome": "结果：{outcome}",
    "manifest-folder": "{path} 是目录；请给样本清单一个文件名",
    "manifest-kept": "{path}：全部 {count} 个样本都与样本清单一致",
    "manifest-written": "已写出 {path}，含 {count} 个样本",
    "output-pair": "{pairs}：应为 A=B，即第一个产物的一个输出和第二个产物的一个输出",
    "paths-absent": "不存在：{paths}",
    "policy-without-config": "策略 {policy} 需要它所在的配置文件；请用 -c 给出",
    "progress-leg": "{leg}",
    "progress-bundle": "{subject}：正在生成证据包",
    "progress-samples": "正在读取样本",
    "demo-fault-unknown": "演示中没有故障 {fault}；请从 {known} 中选一个，或不选",
    "demo-fault-input-scale": "送入图像的像素为 0..16，而网络是用 0..1 训练的",
    "demo-fault-optimizer-fold": "BN 融合时 epsilon 用了 0.001，而网络中是 0.00001",
    "demo-fault-calibration-range": "校准图像两次除以 16，因此所有范围都过小",
    "demo-fault-board-padding": "板卡对 conv4 用 0 补齐，而本应使用零点",
    "demo-fault-board-channels": "板卡上 dw2 的通道顺序相反",
    "demo-fault-board-scale": "板卡上 pw3 的 scale 大了 5 %；得分体现不出来",
    "action-input-empty": "输入 {name} 为空；请去掉它以使用默认值，或给它一个值",
    "action-input-choice": "输入 {name} 为 {value}；应为 {wanted} 之一",
    "action-failed": "{subject}：首个失败的检查是 {check}；证据见作业摘要",
    "action-error": "无法得出结果（退出码 {code}）；原因见此步骤的日志",
    "action-summary-long": "报告超过作业摘要的长度上限（{limit_bytes} 字节）；它在报告目录的 summary.md 中。",
    "install-two-sources": "同时给出了输入 index-url 和 wheelhouse；只保留一个",
    "install-wheelhouse-absent": (
        "wheelhouse {path} 不是目录；请在有网络的机器上用 `pip wheel --wheel-dir {path} driftgate=={version}` 生成，"
        "再拷到此 runner"
    ),
    "install-wheelhouse-other": (
        "wheelhouse {path} 中的 driftgate {version} 与此 action 的不同；请从该 action 自身的提交生成 wheelhouse，或把 "
        "action 固定到该 wheel 的提交"
    ),
    "install-wheelhouse": (
        "{python} 无法从 wheelhouse {path} 安装 driftgate；请用此 Python 在同类机器上以 `pip wheel --wheel-dir {path} "
        "driftgate=={version}` 生成：{tail}"
    ),
    "publish-none": "{path} 下没有可发布的报告；没有上传任何内容，或上传时用了其他名称",
    "publish-failed": "无法发布评论（退出码 {code}）；原因见此步骤的日志，评论文本在报告的 comment.md 中",
    "boards-fork": "该拉取请求来自另一个仓库，其代码不会在任何板卡上运行",
    "boards-event": "事件 {event} 可由他人触发，其代码不会在任何板卡上运行",
    "workflow-labels": '输入 board-labels 为 {found}；请写成标签的 JSON 列表，例如 ["self-hosted", "j6"]',
    "workflow-wheelhouse": (
        "输入 board-wheelhouse 为 {path}，它不是仓库中的目录；请给出仓库中的目录，或板卡 runner 上从根开始的路径"
    ),
    "workflow-boards": "机密 boards 的第 {line} 行不是 NAME=VALUE；请每行写一个变量",
    "gate-job": "作业 {job} 以 {result} 结束；原因见其日志，缺少的内容见报告",
    "gate-outcome": "结果为 {outcome}；证据见作业 judge 的摘要",
    "build-failed": "输入 build 的命令以退出码 {code} 结束；原因见此步骤的日志",
    "build-nothing": "输入 build 的命令没有生成与 {patterns} 匹配的内容；请改正 build-outputs，或让命令生成内容",
    "build-outside": "输入 build-outputs 的 {pattern} 指向仓库之外；请写成相对仓库根目录的路径",
    "watch-stuck": (
        "{job} 在 {minutes} min 内没有找到带标签 {labels} 的 runner：没有在线的，或都在忙其他作业；请查看 Settings → "
        "Actions → Runners，或调大 queue-limit"
    ),
    "watch-cancelled": "此次运行已取消，以便现在就给出报告并指明板卡；其中已没有任何任务在进行。",
    "watch-not-cancelled": "经 {attempts} 次尝试仍无法取消此次运行；请手动取消",
    "watch-over": "已监视 {minutes} min，板卡上的作业段仍在排队等候；GitHub 会取消等待满一天的作业",
    "install-no-folder": (
        "RUNNER_TOOL_CACHE 和 RUNNER_TEMP 都不是可写的目录；请在 Actions runner 上运行此步骤，或设置其中一个"
    ),
    "install-venv": (
        "{python} 无法创建虚拟环境；请安装其 venv 包（Debian：python3-venv），或用输入 python 指定其他解释器：{tail}"
    ),
    "install-package": "{python} 无法安装 driftgate；请查看 pip 的输出，以及此 runner 能否访问包索引：{tail}",
}

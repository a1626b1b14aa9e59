"""
Writes a trained recogniser as a bundle: encoder.onnx, predictor.onnx, joint.onnx, and two meta files, for chunks of 0.32 s and for whole utterances.

    python examples/recogniser/export.py out/recogniser.pt --output examples/recogniser/bundle

Writes nothing if an utterance in chunks results in other steps than in one piece, in PyTorch or on ONNX Runtime.
"""

import argparse
import json
import tempfile
from pathlib import Path

import onnx
import onnxruntime
import torch

import model as shape
from features import FFT, HOP, MELS, RATE, WINDOW
from model import BLANK, CHUNK_FRAMES, DROP_EXTRA, DURATIONS, PRE_ENCODE, WORDS, Recogniser

OPSET = 17
MOST_DIFFERENCE = 1e-5
STATES = ["cache_last_channel", "cache_last_time", "cache_last_channel_len"]

NAMES = {
    "encoder": (["audio_signal", "length", *STATES], ["encoder_output", "encoded_lengths", *(f"{name}_out" for name in STATES)]),
    "predictor": (["y", "h", "c"], ["g", "h_out", "c_out"]),
    "joint": (["encoder_output", "predictor_output"], ["joint_output"]),
}
AXES = {
    "audio_signal": {0: "batch", 2: "time"},
    "cache_last_channel": {0: "batch"},
    "cache_last_time": {0: "batch"},
    "y": {0: "batch", 1: "token_len"},
    "h": {1: "batch"},
    "c": {1: "batch"},
    "predictor_output": {0: "batch", 2: "token_len"},
    "g": {0: "batch", 2: "token_len"},
    "joint_output": {0: "batch", 1: "time", 2: "token_len"},
}

# Of the encoder; numbers are fixed.
SHAPES = {
    "audio_signal": ["B", MELS, "T"],
    "length": ["B"],
    "cache_last_channel": ["B", shape.LAYERS, shape.CACHE, shape.WIDTH],
    "cache_last_time": ["B", shape.LAYERS, shape.WIDTH, shape.KERNEL - 1],
    "cache_last_channel_len": ["B"],
    "encoder_output": ["B", shape.WIDTH, "T_out"],
    "encoded_lengths": ["B"],
}


def axes_of(component, name):
    if name == "encoder_output":
        return {0: "batch", 2: "time_out" if component == "encoder" else "time"}
    return AXES.get(name.removesuffix("_out"), {0: "batch"})


def difference(encode, states):
    """
    The largest difference of steps between utterances in chunks and in one piece. `encode` takes features with 9 frames in front, their count and the
    states, and returns the five outputs.
    """
    torch.manual_seed(0)
    worst = 0.0
    for frames in (8, 31, 32, 33, 100, 777):
        features = torch.nn.functional.pad(4 * torch.randn(1, MELS, frames) - 7, (PRE_ENCODE, 0))
        whole = encode(features, torch.tensor([frames + PRE_ENCODE]), *states)
        steps, carried = [], states
        for start in range(0, frames - 7, CHUNK_FRAMES):
            chunk = features[:, :, start : start + CHUNK_FRAMES + PRE_ENCODE]
            output, lengths, *carried = encode(chunk, torch.tensor([chunk.shape[2]]), *carried)
            steps.append(output[:, :, : int(lengths)])
        joined = torch.cat(steps, 2)
        assert joined.shape == whole[0].shape and int(whole[1]) == joined.shape[2] == frames // 8, (joined.shape, whole[0].shape)
        worst = max(worst, (joined - whole[0]).abs().max().item())
    return worst


def runner(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return lambda *inputs: [torch.from_numpy(each) for each in session.run(None, {n: x.numpy() for n, x in zip(names, inputs)})]


def write(component, module, inputs, path):
    takes, gives = NAMES[component]
    torch.onnx.export(
        module, inputs, str(path), input_names=takes, output_names=gives, opset_version=OPSET, dynamo=False,
        dynamic_axes={name: axes_of(component, name) for name in [*takes, *gives]},
    )  # fmt: skip
    written = onnx.load(path)
    # The exporter does not see that states come back in the shape they went in.
    inputs_by_name = {each.name: each for each in written.graph.input}
    for output in written.graph.output:
        if (given := inputs_by_name.get(output.name.removesuffix("_out"))) is not None:
            output.type.CopyFrom(given.type)
    onnx.save(written, path)
    onnx.checker.check_model(written, full_check=True)
    return written


def meta(step, chunk):
    return {
        "model_name": "trtforge-phrases",
        "sample_rate": RATE,
        "labels": WORDS,
        "blank_id": BLANK,
        "tokenizer_vocab_size": BLANK,
        "joint_vocab_size": BLANK + 1 + DURATIONS,
        "duration_values": list(range(DURATIONS)),
        "torch_version": str(torch.__version__),
        "tensor_layout_contract": {
            "encoder_input": "audio_signal: [B, n_mels, T], length: [B], cache_last_channel: [B, L, S, D], cache_last_time: [B, L, D, K], cache_last_channel_len: [B]",
            "encoder_output": "encoder_output: [B, D_enc, T_out], encoded_lengths: [B]",
            "predictor_input": "y: [B, U], h: [L, B, H], c: [L, B, H]",
            "predictor_output": "g: [B, D_pred, U], h_out: [L, B, H], c_out: [L, B, H]",
            "joint_input": "encoder_output: [B, D_enc, T], predictor_output: [B, D_pred, U]",
            "joint_output": "joint_output: [B, T, U, vocab + 1 + durations]",
        },
        "features": {"type": "log-mel", "n_fft": FFT, "win_length": WINDOW, "n_mels": MELS, "hop_length": HOP, "normalize": "NA"},
        "streaming": {"chunk_size": chunk, "shift_size": chunk, "pre_encode_cache_size": PRE_ENCODE, "sampling_frames": 8},
        "trained": {"by": "examples/recogniser/train.py", "steps": step},
    }


def contract():
    """What the encoder promises of a stream, as `trtforge.contract/1`."""
    roles = {"audio_signal": "signal", "length": "length", "encoder_output": "result", "encoded_lengths": "length", "cache_last_channel_len": "state-length"}

    def binding(name):
        plain = name.removesuffix("_out")
        return {
            "name": name,
            "dtype": "int64" if "len" in plain else "float32",
            "shape": SHAPES[plain],
            "role": roles.get(plain, "state"),
        }

    takes, gives = NAMES["encoder"]
    frames = CHUNK_FRAMES + PRE_ENCODE
    return {
        "schema": "trtforge.contract/1",
        "name": "trtforge-phrases",
        "inputs": [binding(name) for name in takes],
        "outputs": [binding(name) for name in gives],
        "state": [
            {
                "input": "cache_last_channel",
                "output": "cache_last_channel_out",
                "axis": 2,
                "capacity": shape.CACHE,
                "padSide": "left",
                "validLength": "cache_last_channel_len_out",
            },
            {"input": "cache_last_time", "output": "cache_last_time_out"},
            {"input": "cache_last_channel_len", "output": "cache_last_channel_len_out"},
        ],
        "lengths": {"signal": "length", "result": "encoded_lengths", "stateIn": STATES[2], "stateOut": f"{STATES[2]}_out"},
        "cacheLengthRule": {"capacity": shape.CACHE, "dropExtra": DROP_EXTRA, "drop": 0},
        "schedule": {
            "tensor": "audio_signal",
            "axis": 2,
            "first": frames,
            "rest": frames,
            "shift": {"first": CHUNK_FRAMES, "rest": CHUNK_FRAMES},
            "preEncode": {"first": PRE_ENCODE, "rest": PRE_ENCODE},
        },
        "profiles": [{"name": "stream", "ranges": {name: [fixed(size, frames) for size in SHAPES[name]] for name in takes}}],
        "assertions": [
            {"id": "encoded-lengths", "tensor": "encoded_lengths", "kind": "equal", "value": shape.CHUNK},
            {"id": "encoder-output-steps", "tensor": "encoder_output", "kind": "dimension-equals", "axis": -1, "value": shape.CHUNK},
            {"id": "cache-length", "tensor": f"{STATES[2]}_out", "kind": "bounded-by-capacity", "capacity": shape.CACHE},
            {"id": "cache-grows", "tensor": f"{STATES[2]}_out", "kind": "monotonic", "than": STATES[2], "until": shape.CACHE},
        ],
    }


def fixed(size, frames):
    number = {"B": 1, "T": frames}.get(size, size)
    return {"min": number, "opt": number, "max": number}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weights", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trained = torch.load(args.weights, map_location="cpu", weights_only=True)
    recogniser = Recogniser().eval()
    recogniser.load_state_dict(trained["weights"])
    encoder, predictor, joint = recogniser.encoder, recogniser.predictor, recogniser.joint

    states = encoder.begin(1)
    with torch.no_grad():
        in_torch = difference(encoder, states)
    assert in_torch <= MOST_DIFFERENCE, f"chunks give steps that differ by {in_torch:.1e} in PyTorch"
    frames = CHUNK_FRAMES + PRE_ENCODE
    inputs = {
        "encoder": (torch.randn(2, MELS, frames), torch.tensor([frames, frames]), *encoder.begin(2)),
        "predictor": (torch.tensor([[BLANK, 0], [BLANK, 1]]), *predictor.begin(2)),
        "joint": (torch.randn(2, shape.WIDTH, 4), torch.randn(2, shape.PREDICTOR, 2)),
    }
    with tempfile.TemporaryDirectory() as folder:
        models = {
            name: write(name, getattr(recogniser, name), inputs[name], Path(folder) / f"{name}.onnx") for name in NAMES
        }
        on_runtime = difference(runner(Path(folder) / "encoder.onnx"), states)
        assert on_runtime <= MOST_DIFFERENCE, f"chunks give steps that differ by {on_runtime:.1e} on ONNX Runtime"
        for name in NAMES:
            with torch.no_grad():
                expected = getattr(recogniser, name)(*inputs[name])
            expected = expected if isinstance(expected, tuple) else (expected,)
            apart = max((a - b).abs().max().item() for a, b in zip(expected, runner(Path(folder) / f"{name}.onnx")(*inputs[name])))
            assert apart <= 1e-4, f"{name} differs by {apart:.1e} between PyTorch and ONNX Runtime"
            print(f"{name}: {len(models[name].graph.node)} nodes, ONNX Runtime within {apart:.1e} of PyTorch")
    args.output.mkdir(parents=True, exist_ok=True)
    for name, written in models.items():
        onnx.save(written, args.output / f"{name}.onnx")
    documents = {
        "model_meta.json": meta(trained["step"], CHUNK_FRAMES),
        "whole.model_meta.json": meta(trained["step"], 1 << 20),
        "encoder.contract.json": contract(),
    }
    for name, document in documents.items():
        (args.output / name).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    size = sum((args.output / f"{name}.onnx").stat().st_size for name in NAMES)
    print(f"chunks differ from whole utterances by {in_torch:.1e} in PyTorch, {on_runtime:.1e} on ONNX Runtime; {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

/** Layers as TensorRT 10's inspector writes them: blocks of convolutions with a residual connection each, in scopes of an ONNX model. */
export function madeLayers(
  count: number,
  suffix = '',
): { readonly layers: string; readonly profile: string } {
  const layers: object[] = [];
  const tensor = (name: string) => ({
    Name: name,
    Location: 'Device',
    Dimensions: [8, 64, 28, 28],
    'Format/Datatype': 'Channel major FP16 format where channel % 8 == 0',
  });
  let [stream, block] = ['input', 'input'];
  for (let index = 0; index < count; index++) {
    const place = `/stage${Math.floor(index / 600)}/block${Math.floor(index / 6)}`;
    const isJoin = index % 6 === 5;
    const nodes = isJoin
      ? [`${place}/Add${suffix}`]
      : [`${place}/conv${index % 6}/Conv${suffix}`, `${place}/act${index % 6}/Relu`];
    const output = `t${index}${suffix}`;
    layers.push({
      Name: nodes.join(' + '),
      LayerType: isJoin ? 'PointWiseV2' : 'CaskConvolution',
      Inputs: isJoin ? [tensor(stream), tensor(block)] : [tensor(stream)],
      Outputs: [tensor(output)],
      ...(isJoin ? {} : { Weights: { Type: 'Half', Count: 36_864 }, Kernel: [3, 3], Stride: [1, 1] }),
      TacticName: `sm90_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x64x32_stage${index % 5}`,
      TacticValue: '0x00000000000203a1',
      StreamId: 0,
      Metadata: nodes.map((node) => `[ONNX Layer: ${node}]`).join('\u001e'),
    });
    if (isJoin) block = output;
    stream = output;
  }
  const times = layers.map((layer, index) => {
    const name = (layer as { Name: string }).Name;
    const ms = 0.01 + ((index * 37) % 101) / 1000;
    return `, { "name" : "${name}", "timeMs" : ${(ms * 100).toFixed(4)}, "averageMs" : ${ms.toFixed(6)}, "medianMs" : ${ms.toFixed(6)}, "percentage" : 0.1 }`;
  });
  return {
    layers: JSON.stringify({ Layers: layers, Bindings: ['input', `t${count - 1}${suffix}`] }),
    profile: `[\n  { "count" : 100 }\n${times.join('\n')}\n]\n`,
  };
}

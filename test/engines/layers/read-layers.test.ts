import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bytesInFormat,
  dtypeOfFormat,
  layersText,
  readLayers,
} from '../../../src/engines/layers/read-layers.js';
import { engineLayersSchema } from '../../../src/engines/layers/result.js';
import { originOfLayer } from '../../../src/engines/plan/layer-names.js';
import { TrtforgeError } from '../../../src/errors.js';

const fixture = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/engine-layers/${name}.json`, import.meta.url));
const readLayersFile = (path: string) => readLayers(layersText(path), path);
const recorded = ['10.6-resnet50-fp16', '8.6-resnet50-fp16'] as const;

describe('layer information recorded on an H200', () => {
  it.each(recorded)('%s is read whole', (name) => {
    const read = readLayersFile(fixture(name));
    expect(engineLayersSchema.parse(read)).toEqual(read);
    expect(read).toMatchObject({ detail: 'detailed', dialect: 'bindings' });
    expect(read.layers).toHaveLength(153);
    expect(read.layers.map(({ index }) => index)).toEqual(read.layers.map((_, index) => index));
    expect(read.bindings).toMatchObject([
      { name: 'data', mode: 'input', dtype: 'float32' },
      { name: 'logits', mode: 'output', dtype: 'float32' },
    ]);
    const convolution = read.layers.find(({ name: layer }) => layer === '/conv1/Conv + /relu/Relu');
    expect(convolution).toMatchObject({
      type: 'CaskConvolution',
      precision: 'float16',
      onnxNodes: ['/conv1/Conv', '/relu/Relu'],
      copies: false,
      stream: 0,
      weightBytes: 2 * (9408 + 64),
      tactic: { name: expect.stringMatching(/^sm90_xmma_fprop/), value: '0xc4e457eb6dc4cc67' },
      attributes: { Kernel: [7, 7], Activation: 'RELU' },
    });
  });

  it('the three channels of a picture are filled up to four in a layout of four', () => {
    const [copy] = readLayersFile(fixture('10.6-resnet50-fp16')).layers;
    expect(copy).toMatchObject({
      type: 'Reformat',
      origin: 'REFORMAT',
      copies: true,
      precision: 'float32',
      onnxNodes: ['/conv1/Conv', '/relu/Relu'],
      outputBytes: 32 * 4 * 224 * 224 * 2,
    });
  });

  it('kernels of the compiler keep their nodes, and moves of weights are copies without any', () => {
    const { layers } = readLayersFile(fixture('10.6-resnet50-fp16'));
    expect(layers.find(({ name }) => name === '__myl_FcCas_myl150_2')).toMatchObject({
      type: 'fusion',
      precision: 'float16',
      onnxNodes: ['/fc/Gemm'],
      outputBytes: null,
      inputs: [{ shape: [null, 2048], bytes: null }, { bytes: 2048 * 1000 * 2 }, { bytes: 2000 }],
    });
    expect(layers.find(({ name }) => name === '__myl_Mov_myl52_0')).toMatchObject({
      copies: true,
      onnxNodes: [],
    });
  });
});

describe('other dialects', () => {
  it('an engine built without detail has names alone, and what follows from them', () => {
    const read = readLayers('{"Layers": ["/a/Conv + /a/Relu", "PWN(/b/Add)"],\n"Bindings": ["x", "y"]}');
    expect(read).toMatchObject({
      detail: 'names',
      layers: [
        { name: '/a/Conv + /a/Relu', type: null, onnxNodes: ['/a/Conv', '/a/Relu'], outputBytes: 0 },
        { onnxNodes: ['/b/Add'] },
      ],
      bindings: [
        { name: 'x', mode: null, dtype: null },
        { name: 'y', mode: null },
      ],
    });
  });

  it('11 reports its tensors as objects, with the ranges of each profile', () => {
    const read = readLayers(
      JSON.stringify({
        Layers: [
          {
            Name: '/fc/Gemm',
            LayerType: 'gemm',
            Inputs: [
              { Name: 'x', Dimensions: [-1, 8], Format: 'Row major linear', Datatype: 'Half' },
              { Name: 'w', Dimensions: [8, 4], Format: 'Row major linear', Datatype: 'Half' },
            ],
            Outputs: [{ Name: 'y', Dimensions: [-1, 4], Format: 'Row major linear', Datatype: 'BFloat16' }],
            Metadata: '[ONNX Layer: /fc/Gemm]',
          },
        ],
        'I/O Tensors': [
          {
            Name: 'x',
            IOMode: 'Input',
            DataType: 'Half',
            Dimensions: [-1, 8],
            Location: 'Device',
            IsShapeInferenceIO: 'No',
            ProfileInfo: [
              { MinShape: [1, 8], OptShape: [4, 8], MaxShape: [8, 8], Format: 'Row major linear' },
            ],
          },
          {
            Name: 'y',
            IOMode: 'Output',
            DataType: 'BFloat16',
            Dimensions: [-1, 4],
            IsShapeInferenceIO: false,
          },
        ],
      }),
    );
    expect(read).toMatchObject({
      dialect: 'io-tensors',
      layers: [
        { precision: 'float16', inputs: [{ format: 'Row major linear', dtype: 'float16' }, { bytes: 64 }] },
      ],
      bindings: [
        {
          name: 'x',
          mode: 'input',
          dtype: 'float16',
          shapeTensor: false,
          profiles: [{ min: [1, 8], opt: [4, 8], max: [8, 8] }],
        },
        { name: 'y', mode: 'output', dtype: 'bfloat16', shape: [null, 4], shapeTensor: false },
      ],
    });
  });

  it('layers of a second profile are reported under their own names', () => {
    const { layers, bindings } = readLayers(
      '{"Layers":["a","a [profile 1]"],"Bindings":["x","x [profile 1]"]}',
    );
    expect(layers.map(({ name, profile }) => [name, profile])).toEqual([
      ['a', 0],
      ['a', 1],
    ]);
    expect(bindings.map(({ name }) => name)).toEqual(['x']);
  });

  it('numbers that C++ prints and JSON does not know are taken as nothing', () => {
    const [layer] = readLayers(
      '{"Layers":[{"Name":"nan","LayerType":"x","Beta":-inf,"Alpha": nan,"Metadata":"[ONNX Layer: a]\u001e[ONNX Layer: b]"}]}',
    ).layers;
    expect(layer).toMatchObject({
      name: 'nan',
      attributes: { Alpha: null, Beta: null },
      onnxNodes: ['a', 'b'],
    });
  });

  it.each([
    ['nothing', ''],
    ['text', 'Layers:'],
    ['a list', '[]'],
    ['another object', '{"layers": []}'],
    ['a layer without a name', '{"Layers": [{"LayerType": "Constant"}]}'],
    ['a cut file', '{"Layers": ["a", "b"'],
  ])('%s is rejected by name', (_what, text) => {
    expect(() => readLayers(text, 'x.json')).toThrow(
      expect.objectContaining({ code: 'TF_LAYERS_INVALID', message: expect.stringMatching(/^x\.json /) }),
    );
  });
});

describe('names of layers', () => {
  it.each<[string, string | null, readonly string[]]>([
    ['/a/Conv', null, ['/a/Conv']],
    ['/a/Conv + /a/Add + /a/Relu', null, ['/a/Conv', '/a/Add', '/a/Relu']],
    ['/a/Conv || /b/Conv', null, ['/a/Conv', '/b/Conv']],
    ['PWN(/a/Sigmoid)', null, ['/a/Sigmoid']],
    ['PWN(PWN(/a/Sigmoid), /a/Mul)', null, ['/a/Sigmoid', '/a/Mul']],
    ['/c/Conv + PWN(PWN(/a/Sigmoid), PWN(/a/Mul))', null, ['/c/Conv', '/a/Sigmoid', '/a/Mul']],
    ['PWN(act(1), b(2))', null, ['act(1)', 'b(2)']],
    ['{ForeignNode[/enc/Cast_2.../enc/Sigmoid]}', null, ['/enc/Cast_2', '/enc/Sigmoid']],
    ['{ForeignNode[model.0.a...model.9.b]}', '', ['model.0.a', 'model.9.b']],
    ['Reformatting CopyNode for Input Tensor 0 to /a/Conv + /a/Relu', '', ['/a/Conv', '/a/Relu']],
    ['Reformatting CopyNode for Output Tensor 1 to /a/Split', '', ['/a/Split']],
    ['reshape_after_/fc/Gemm', null, ['/fc/Gemm']],
    ['(Unnamed Layer* 13) [Constant]', null, []],
    ['/a/MatMul + ONNXTRT_squeezeTensor + (Unnamed Layer* 3) [Shuffle]', null, ['/a/MatMul']],
    ['__myl_FcCas_myl150_2', null, []],
    ['Identity_44', '', []],
    ['anything', '[ONNX Layer: a]\u001e[ONNX Layer: b [0]]\u001e[ONNX Layer: a]', ['a', 'b [0]']],
  ])('%s', (name, metadata, expected) => {
    expect(originOfLayer(name, metadata, null).onnxNodes).toEqual(expected);
  });
});

describe('formats', () => {
  it.each([
    ['Row major linear FP32', 'float32'],
    ['Row major linear FP16 format', 'float16'],
    ['Channel major INT8 format where channel % 32 == 0', 'int8'],
    ['Four wide channel vectorized row major Int8 format', 'int8'],
    ['Row Major Linear BOOL', 'bool'],
    ['Half', 'float16'],
    ['BFloat16', 'bfloat16'],
    ['Int64', 'int64'],
    ['FP8', 'float8_e4m3fn'],
    ['N/A due to dynamic shapes', null],
    ['', null],
  ])('%s is %s', (format, dtype) => expect(dtypeOfFormat(format)).toBe(dtype));

  it.each([
    [[1, 3, 2, 2], 'Channel major FP16 format where channel % 8 == 0', 64],
    [[1, 3, 2, 2, 2], 'Channel major FP16 format where channel % 8 == 0 and with 3 spatial dimensions', 128],
    [[3, 2, 2], 'Thirty-two wide channel vectorized row major Int8 format', 128],
    [[1, null, 2], 'Half', null],
    [[], 'Float', 4],
    [null, 'Float', null],
  ])('%j as %s takes %s bytes', (shape, format, bytes) =>
    expect(bytesInFormat(shape, format, dtypeOfFormat(format))).toBe(bytes),
  );
});

describe('any bytes', () => {
  const real = readFileSync(fixture('8.6-resnet50-fp16')).subarray(0, 40_000);

  it('are layers or rejected', () => {
    const source = Buffer.from(`${real.subarray(0, real.lastIndexOf('},{'))}}]}`);
    expect(readLayers(source.toString()).layers.length).toBeGreaterThan(20);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(source.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 20 }),
        fc.boolean(),
        (edits, cut) => {
          const bytes = Buffer.from(source);
          for (const [at, value] of edits) bytes[at] = value;
          const text = bytes.subarray(0, cut ? edits[0]?.[0] : undefined).toString();
          try {
            engineLayersSchema.parse(readLayers(text));
          } catch (error) {
            expect(error).toBeInstanceOf(TrtforgeError);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it('of any JSON are layers or rejected', () => {
    const key = fc.constantFrom(
      'Name',
      'Inputs',
      'Outputs',
      'Metadata',
      'Weights',
      'Dimensions',
      'Type',
      'Count',
      'Format/Datatype',
      '__proto__',
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(fc.array(value, { maxLength: 4 }), fc.boolean(), value, (layers, modern, tensors) => {
        const text = JSON.stringify({ Layers: layers, [modern ? 'I/O Tensors' : 'Bindings']: tensors });
        try {
          engineLayersSchema.parse(readLayers(text));
        } catch (error) {
          expect(error).toMatchObject({ code: 'TF_LAYERS_INVALID' });
        }
      }),
    );
  });

  it('take linear time: of these, quadratic time is hours', () => {
    const hostile = [
      `{"Layers":["${'PWN('.repeat(1_000_000)}"]}`,
      `{"Layers":["${'ForeignNode['.repeat(1_000_000)}"]}`,
      `{"Layers":["${' + '.repeat(1_000_000)}"]}`,
      `{"Layers":[{"Name":"a","Metadata":"${'[ONNX Layer: '.repeat(1_000_000)}"}]}`,
      `{"Layers":[${'nan '.repeat(1_000_000)}`,
      '['.repeat(4_000_000),
    ];
    for (const text of hostile) {
      try {
        readLayers(text);
      } catch (error) {
        expect(error).toMatchObject({ code: 'TF_LAYERS_INVALID' });
      }
    }
  });
});

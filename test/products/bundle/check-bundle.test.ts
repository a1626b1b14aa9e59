import { describe, expect, test } from 'vitest';
import { parseMeta } from '../../../src/formats/contract/model-meta.js';
import { checkBundle, rejectMismatches } from '../../../src/products/bundle/check-bundle.js';
import type { Component } from '../../../src/products/bundle/component.js';
import { refusal } from '../../support/refusal.js';

type Shape = (number | string | null)[];
const value = (name: string, dtype: string, shape: Shape) => ({ name, dtype, shape });

/** A bundle like Parakeet's, some of it replaced. */
function bundle(more: { [name: string]: Partial<Component> } = {}): Component[] {
  const component = (
    name: string,
    inputs: Component['inputs'],
    outputs: Component['outputs'],
  ): Component => ({
    name,
    onnx: `${name}.onnx`,
    inputs,
    outputs,
    externalFiles: [],
    embeddingRows: name === 'predictor' ? 8193 : null,
    ...more[name],
  });
  return [
    component(
      'encoder',
      [value('audio_signal', 'float32', ['B', 128, 'T']), value('length', 'int64', ['B'])],
      [value('encoder_output', 'float32', ['B', 1024, 'T_out']), value('encoded_lengths', 'int64', ['B'])],
    ),
    component(
      'predictor',
      [
        value('y', 'int64', ['B', 'U']),
        value('h', 'float32', [2, 'B', 640]),
        value('c', 'float32', [2, 'B', 640]),
      ],
      [
        value('g', 'float32', ['B', 640, 'U']),
        value('h_out', 'float32', [2, 'B', 640]),
        value('c_out', 'float32', [2, 'B', 640]),
      ],
    ),
    component(
      'joint',
      [
        value('encoder_output', 'float32', ['B', 1024, 'T']),
        value('predictor_output', 'float32', ['B', 640, 'U']),
      ],
      [value('joint_output', 'float32', ['B', 'T', 'U', 8198])],
    ),
  ];
}

const fields = {
  blank_id: 8192,
  tokenizer_vocab_size: 8192,
  joint_vocab_size: 8198,
  duration_values: [0, 1, 2, 3, 4],
  tensor_layout_contract: {
    encoder_input: 'audio_signal: [B, n_mels, T], length: [B]',
    predictor_input: 'h: [L, B, H]',
  },
  features: { n_mels: 128 },
};
const meta = (more: object = {}) => parseMeta(JSON.stringify({ ...fields, ...more }), 'model_meta.json');

describe('a bundle', () => {
  test('that fits its meta file has nothing against it', () => {
    expect(checkBundle(meta(), bundle())).toEqual({ mismatches: [], warnings: [] });
  });

  test('whose meta file is all null is taken as it is, and that is reported', () => {
    const { mismatches, warnings } = checkBundle(parseMeta('{}', 'model_meta.json'), bundle());
    expect(mismatches).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/mel bins/),
      expect.stringMatching(/logits/),
      expect.stringMatching(/blank_id, tokenizer_vocab_size, duration_values/),
    ]);
  });

  test.each(['blank_id', 'tokenizer_vocab_size', 'duration_values'])('without %s is warned of', (field) => {
    const { mismatches, warnings } = checkBundle(meta({ [field]: null }), bundle());
    expect(mismatches).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining(field)]);
  });

  describe('whose labels have the blank among them', () => {
    const words = (count: number) => Array.from({ length: count }, (_, at) => `w${at}`);
    const found = (labels: readonly string[], more: object) => {
      const read = meta({ labels, ...more });
      return { ...checkBundle(read, bundle()), blank: read.blankId };
    };

    test.each(['<blk>', '<blank>', '<b>', '∅', '<BLANK>', '[blank]', '<eps>'])(
      'at another place: %s',
      (label) => {
        const { mismatches } = found([label, ...words(8192)], {});
        expect(mismatches).toMatchObject([
          { component: 'joint', message: expect.stringContaining(`"${label}"`) },
        ]);
        expect(found([...words(8192), label], {})).toMatchObject({ mismatches: [], warnings: [] });
      },
    );

    test('takes it from them where nothing else states it, and that is reported', () => {
      const first = found(['<blk>', ...words(8192)], { blank_id: null });
      expect(first).toMatchObject({ blank: 0, mismatches: [] });
      expect(first.warnings).toEqual([expect.stringContaining('"<blk>"')]);
      // The labels alone count the tokens.
      const { vocabulary } = meta({ labels: ['<blk>', ...words(8192)], tokenizer_vocab_size: null });
      expect(vocabulary).toBe(8192);
    });
  });

  test.each([
    ['[B, L, H]', 'predictor', 'h'],
    ['[L, B, H]', undefined, undefined],
  ])('whose states are declared to be %s', (layout, component, tensor) => {
    const layouts = { ...fields.tensor_layout_contract, predictor_input: `h: ${layout}` };
    const { mismatches } = checkBundle(meta({ tensor_layout_contract: layouts }), bundle());
    expect(mismatches.map((each) => [each.component, each.tensor])).toEqual(
      component === undefined ? [] : [[component, tensor]],
    );
  });

  test.each<[string, unknown]>([
    ['a number', 'audio_signal: [B, 128, T]'],
    ['another word', 'audio_signal: [B, D, T]'],
    ['words that are known of no axis', 'audio_signal: [X, D, L]'],
    ['no name', '[B, n_mels, T]'],
    ['parentheses', 'audio_signal: (B, 128, T)'],
    ['prose', 'features, batch first'],
    ['an object', { audio_signal: ['B', 128, 'T'] }],
    ['a list', ['B', 'n_mels', 'T']],
    ['nothing', undefined],
  ])('whose contract has %s for the mel bins contradicts another number of them', (_, layout) => {
    const contract = { ...fields.tensor_layout_contract, encoder_input: layout };
    const found = (mels: number) =>
      checkBundle(meta({ tensor_layout_contract: contract, features: { n_mels: mels } }), bundle());
    expect(found(80).mismatches).toMatchObject([{ component: 'encoder', tensor: 'audio_signal' }]);
    expect(found(128).mismatches).toEqual([]);
  });

  const wrong: [string, ReturnType<typeof meta>, Component[], RegExp][] = [
    [
      'mel bins',
      meta({ features: { n_mels: 80 } }),
      bundle(),
      /encoder: axis 1 of "audio_signal" is 128; the meta file states 80 mel bins/,
    ],
    [
      'logits',
      meta({ joint_vocab_size: 1030 }),
      bundle(),
      /joint: "joint_output" has 8198 logits; the meta file states 1030/,
    ],
    [
      'vocabulary',
      meta({ tokenizer_vocab_size: 1024 }),
      bundle(),
      /8198 logits are not 1024 tokens, a blank and 5 durations/,
    ],
    [
      'durations',
      meta({ duration_values: [0, 1] }),
      bundle(),
      /8198 logits are not 8192 tokens, a blank and 2 durations/,
    ],
    [
      'a table too short',
      meta(),
      bundle({ predictor: { embeddingRows: 1025 } }),
      /predictor: its table has 1025 tokens; the meta file needs 8193/,
    ],
    [
      'a blank beyond the tokens',
      meta({ blank_id: 9000 }),
      bundle({ predictor: { embeddingRows: null } }),
      /blank 9000 is beyond its 8192 tokens/,
    ],
    [
      'the rank of length',
      meta(),
      bundle({
        encoder: {
          inputs: [value('audio_signal', 'float32', ['B', 128, 'T']), value('length', 'int64', ['B', 1])],
        },
      }),
      /encoder: "length" is \[B, 1\], of rank 2; the meta file's contract states \[B\]/,
    ],
    [
      'a length of rank 3',
      meta({ tensor_layout_contract: null }),
      bundle({
        encoder: {
          inputs: [value('audio_signal', 'float32', ['B', 128, 'T']), value('length', 'int64', ['B', 1, 1])],
        },
      }),
      /"length" is \[B, 1, 1\]; lengths are/,
    ],
    [
      'a state of rank 2',
      meta({ tensor_layout_contract: null }),
      bundle({ predictor: { inputs: [value('y', 'int64', ['B', 'U']), value('h', 'float32', ['B', 640])] } }),
      /the state "h" is \[B, 640\]; it must be \[L, B, H\]/,
    ],
    [
      'a state of open width',
      meta(),
      bundle({
        predictor: { inputs: [value('y', 'int64', ['B', 'U']), value('h', 'float32', ['L', 'B', 640])] },
      }),
      /layers and width of \[L, B, H\] must be fixed numbers/,
    ],
    [
      'states that differ',
      meta(),
      bundle({
        predictor: {
          inputs: [
            value('y', 'int64', ['B', 'U']),
            value('h', 'float32', [2, 'B', 640]),
            value('c', 'float32', [2, 'B', 320]),
          ],
        },
      }),
      /"h" is \[2, B, 640\], "c" \[2, B, 320\]/,
    ],
    [
      'an encoder of another width than the joint network takes',
      meta(),
      bundle({ encoder: { outputs: [value('encoder_output', 'float32', ['B', 512, 'T_out'])] } }),
      /joint: "encoder_output" is \[B, 1024, T\]; the encoder outputs "encoder_output" as \[B, 512, T_out\]/,
    ],
    [
      'a layout in another order',
      meta({ tensor_layout_contract: { encoder_input: 'audio_signal: [B, T, n_mels]' } }),
      bundle({ encoder: { inputs: [value('audio_signal', 'float32', ['B', 'T', 80])] } }),
      /axis 2 of "audio_signal" is 80; the meta file states 128 mel bins/,
    ],
  ];
  test.each(wrong)(
    'that contradicts its meta file in %s is an error that states it',
    (_, metaFile, components, message) => {
      const findings = checkBundle(metaFile, components);
      const error = refusal(() => rejectMismatches(metaFile, findings));
      expect(error.code).toBe('TF_BUNDLE_MISMATCH');
      expect(error.message).toMatch(message);
    },
  );

  test('with several mismatches lists all of them at once', () => {
    const metaFile = meta({ features: { n_mels: 80 }, joint_vocab_size: 1030 });
    const error = refusal(() => rejectMismatches(metaFile, checkBundle(metaFile, bundle())));
    expect(error.message).toMatch(
      /in 3 places\.\nencoder: .*80 mel bins.*\njoint: .*1030.*\njoint: .*8192 tokens/s,
    );
  });

  test('is not rejected for names in free text that no tensor has', () => {
    const { mismatches, warnings } = checkBundle(
      meta({ tensor_layout_contract: { encoder_output: 'outputs: [B, D, T]' } }),
      bundle(),
    );
    expect(mismatches).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('"outputs"')]);
  });
});

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeModel } from '../../../src/formats/onnx/index.js';
import { scratchFolder } from '../../formats/onnx/support/models.js';
import { acceptedModels, rejectedModels } from '../../formats/onnx/support/rejected.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

const folder = scratchFolder();

async function build(model: Parameters<typeof writeModel>[0], name: string) {
  const path = join(folder, `${name.replace(/\W+/g, '-')}.onnx`);
  await writeModel(model, path);
  const open = model.proto.graph?.input.some(
    ({ type }) =>
      type?.value.case === 'tensorType' && type.value.value.shape?.dim[0]?.value.case === 'dimParam',
  );
  const batch = open ? ['--batch', '1/4/8'] : [];
  const target = ['--target', 'tensorrt-rtx:sm_89', '--no-cache', '--json'];
  return trtforge(['build', path, '-o', `${path}.engine`, ...target, ...batch]);
}

interface Issue {
  readonly id: string;
  readonly severity: string;
}

/** What ends before the builder. */
const EARLIER: Readonly<Record<string, string>> = {
  'a batch that is baked in': 'TF_PROFILE_INVALID',
  'NonZero on tensorrt-rtx': 'TF_TARGET_UNSUPPORTED',
  'a plug-in of TensorRT': 'TF_TARGET_UNSUPPORTED',
};

describeWith('toolchain', 'the builder of tensorrt-rtx', () => {
  test.each(Object.entries(rejectedModels))(
    'rejects %s, and the error has the finding',
    async (name, [model]) => {
      const answer = await build(model, name);
      expect(answer.exitCode).toBe(2);
      const { error } = answer.json<{ error: { code: string; details: { issues: Issue[] } } }>();
      if (name in EARLIER) return expect(error.code).toBe(EARLIER[name]);
      expect(['TF_MODEL_REJECTED', 'TF_BUILD_FAILED']).toContain(error.code);
      const errors = error.details.issues.filter(({ severity }) => severity === 'error').map(({ id }) => id);
      expect(errors[0]).toMatch(/^(?:model-finding|topk-too-many)$/);
      expect(errors).not.toContain('driver-too-old');
    },
  );

  test.each(Object.entries(acceptedModels))('takes %s', async (name, model) => {
    expect(await build(model, name)).toMatchObject({ exitCode: 0 });
  });
});

import { inspectModel } from '../onnx/inspect.js';
import { plural } from '../report/quantity.js';
import type { ForgePhase, Run } from './forged.js';
import { writeJson } from './run-root.js';

export const inspectPhase = ({ options, root }: Run): ForgePhase => ({
  name: 'inspect',
  skip: () => null,
  run: async () => {
    const inspection = inspectModel(options.model);
    writeJson(root.stepResult('inspect'), inspection);
    const { nodesTotal, findings } = inspection;
    return {
      found: { inspection },
      detail: `${plural(nodesTotal, 'node')}, ${findings.length === 0 ? 'no finding' : plural(findings.length, 'finding')}`,
    };
  },
});

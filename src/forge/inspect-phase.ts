import { plural } from '../base/text/quantity.js';
import { inspectModel } from '../formats/onnx/inspect.js';
import type { ForgePhase, Run } from './run-state.js';

export const inspectPhase = ({ options }: Run): ForgePhase => ({
  name: 'inspect',
  decides: true,
  skip: () => null,
  run: async () => {
    const inspection = inspectModel(options.model);
    const { nodesTotal, findings } = inspection;
    return {
      found: { inspection },
      detail: `${plural(nodesTotal, 'node')}, ${findings.length === 0 ? 'no finding' : plural(findings.length, 'finding')}`,
    };
  },
});

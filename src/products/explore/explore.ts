import { join } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import { timesByOperator } from '../../engines/layers/summary.js';
import { TrtforgeError } from '../../errors.js';
import { packageVersion } from '../../version.js';
import { compareRows } from './compare.js';
import { nodeDataFiles } from './model-explorer.js';
import type { Explored } from './result.js';
import { sideOf } from './rows.js';
import { type ReadContext, readSide } from './sources.js';
import { explorePage } from './write-page.js';

interface ExploreRequest {
  readonly sides: readonly Parameters<typeof readSide>[0][];
  /** The page, or the folder of node data; nothing is written without it. */
  readonly output: string | undefined;
  readonly as: 'page' | 'model-explorer';
}

/** Reads one side or two, joins what is known of their layers, and writes it. Throws what `readSide` and `compareRows` throw, TF_WRITE_FAILED. */
export async function exploreLayers(request: ExploreRequest, context: ReadContext): Promise<Explored> {
  const { output, as } = request;
  if (as === 'model-explorer' && (output === undefined || request.sides.length > 1))
    throw new TrtforgeError(
      'TF_USAGE',
      '--as model-explorer writes the figures of one engine or model into a folder.',
      { remedy: 'Pass one of them, and the folder with -o.' },
    );
  const read = [];
  for (const side of request.sides) read.push(await readSide(side, context));
  const sides = read.map((each) => ({ evidence: each, ...sideOf(each) }));
  const [a, b] = sides;
  const explored: Explored = {
    schema: 'trtforge.explore/1',
    version: packageVersion(),
    sides: sides.map(({ side }) => side),
    operators: timesByOperator(
      sides.map(({ rows }) => rows.map(({ row }) => ({ ...row, onnxNodes: row.onnx }))),
      sides.map(({ evidence }) => evidence.model?.nodes),
    ),
    comparison:
      a === undefined || b === undefined
        ? null
        : compareRows(a.rows, b.rows, [a.side.file, b.side.file], a.side.kind === b.side.kind),
    written: [],
  };
  if (output === undefined || a === undefined) return explored;
  if (as === 'page') {
    publishFile(output, explorePage(explored));
    return { ...explored, written: [output] };
  }
  const { model } = a.evidence;
  if (model === null)
    throw new TrtforgeError(
      'TF_USAGE',
      `The ONNX model of ${a.side.file} is not known, whose nodes would have the figures.`,
      {
        remedy: 'Pass the model with --from.',
      },
    );
  try {
    makeFolder(output);
  } catch (cause) {
    throw writeFailed(output, cause);
  }
  const written = [...nodeDataFiles(a.rows, model)].map(([name, data]) => {
    publishFile(join(output, name), `${JSON.stringify(data)}\n`);
    return join(output, name);
  });
  return { ...explored, written };
}

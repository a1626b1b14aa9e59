import { publishFile } from '../../system/publish.js';
import { readText } from '../../system/read-text.js';
import type { Contract } from './contract.js';
import { isEncoderForm, readEncoderForm } from './encoder.js';
import { contractInvalid, ignoredFields, parseForm } from './json.js';
import { type ContractFile, contractSchema } from './schema.js';
import { isWholeModelForm, readWholeModelForm } from './whole-model.js';

/** A contract is a page or two; what is larger is another file. */
const MAX_BYTES = 16 << 20;

/**
 * Reads a streaming contract in any form: ours (`trtforge.contract/1`), the binding contract of a streaming encoder (layer-first or batch-first), the
 * contract of a whole model. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CONTRACT_INVALID.
 */
export function readContract(path: string): Contract {
  return parseContract(path, readText(path, MAX_BYTES, 'TF_CONTRACT_INVALID'));
}

/** The same from text; `path` names it in errors. */
export function parseContract(path: string, text: string): Contract {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw contractInvalid(path, 'it is not JSON');
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw contractInvalid(path, 'it is no JSON object');
  const fields = content as Readonly<Record<string, unknown>>;
  const { schema } = fields;
  const contract =
    schema === 'trtforge.contract/1'
      ? readOwnForm(path, content)
      : isWholeModelForm(fields)
        ? readWholeModelForm(path, content)
        : isEncoderForm(fields)
          ? readEncoderForm(path, content)
          : undefined;
  if (contract === undefined)
    throw contractInvalid(path, 'it has neither inputs and outputs nor an encoder with streaming_io');
  checkReferences(path, contract);
  return contract;
}

/** Writes a contract as `trtforge.contract/1`. Throws TF_WRITE_FAILED. */
export const writeContract = (path: string, contract: Contract): void =>
  publishFile(path, `${JSON.stringify(contractFileOf(contract), null, 2)}\n`);

/** A contract as its file holds it: where it was read from and what was ignored there are left out. */
export const contractFileOf = ({ origin: _, ignored: __, ...file }: Contract): ContractFile =>
  contractSchema.parse(file);

function readOwnForm(path: string, content: unknown): Contract {
  const file: ContractFile = parseForm(path, contractSchema, content);
  return { ...file, origin: { path, form: 'trtforge' }, ignored: ignoredFields(content, file) };
}

/** A name that stands for no tensor would make a promise that nobody checks. */
function checkReferences(path: string, contract: Contract): void {
  const inputs = namesOf(path, 'input', contract.inputs);
  const outputs = namesOf(path, 'output', contract.outputs);
  const need = (known: ReadonlySet<string>, name: string | null, what: string) => {
    if (name !== null && !known.has(name))
      throw contractInvalid(path, `${what} names ${name}, which is none`);
  };
  for (const { input, output, validLength } of contract.state) {
    need(inputs, input, 'an input of the state');
    need(outputs, output, 'an output of the state');
    need(outputs, validLength, 'a valid length of the state');
  }
  const all = new Set([...inputs, ...outputs]);
  for (const { id, tensor } of contract.assertions) need(all, tensor, `the assertion ${id}`);
  need(inputs, contract.lengths.signal, 'the length of the signal');
  need(inputs, contract.lengths.stateIn, 'the incoming length of the state');
  need(outputs, contract.lengths.result, 'the length of the result');
  need(outputs, contract.lengths.stateOut, 'the outgoing length of the state');
  need(inputs, contract.schedule?.tensor ?? null, 'the schedule');
}

function namesOf(path: string, what: string, bindings: Contract['inputs']): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { name } of bindings) {
    if (names.has(name)) throw contractInvalid(path, `the ${what} ${name} stands there twice`);
    names.add(name);
  }
  return names;
}

import { readJson, readText } from '../../base/files/files.js';
import { parseJson } from '../../base/files/json.js';
import { publishFile } from '../../base/files/publish.js';
import { assertUnedited } from '../../base/files/user-files.js';
import { type Contract, type ContractFile, contractSchema } from './contract.js';
import { isEncoderForm, readEncoderForm } from './encoder-form.js';
import { contractInvalid, parseForm } from './parse-form.js';

/** A contract is a page or two; what is larger is another file. */
const MAX_BYTES = 1 << 20;

const OWN_SCHEMA = 'trtforge.contract/1';

/**
 * Reads a streaming contract in any form: ours (`trtforge.contract/1`), the binding contract of a streaming encoder (layer-first or
 * batch-first). Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CONTRACT_INVALID.
 */
export function readContract(path: string): Contract {
  return parseContract(path, readText(path, MAX_BYTES, 'TF_CONTRACT_INVALID'));
}

/** The same of a file that may have another purpose: undefined where it is no JSON of our schema. */
export function readContractIfOne(path: string): Contract | undefined {
  const content = readJson(path, MAX_BYTES) as { readonly schema?: unknown } | null | undefined;
  return content?.schema === OWN_SCHEMA ? readContract(path) : undefined;
}

/** The same from text; `path` names it in errors. */
export function parseContract(path: string, text: string): Contract {
  const content = parseJson(text, MAX_BYTES, (why) => contractInvalid(path, why));
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw contractInvalid(path, 'it is not a JSON object');
  const fields = content as Readonly<Record<string, unknown>>;
  const { schema } = fields;
  if (typeof schema === 'string' && schema.startsWith('trtforge.') && schema !== OWN_SCHEMA)
    throw contractInvalid(path, `its schema is ${schema}, not ${OWN_SCHEMA}`);
  const contract =
    schema === OWN_SCHEMA
      ? readOwnForm(path, content)
      : isEncoderForm(fields)
        ? readEncoderForm(path, content)
        : undefined;
  if (contract === undefined) throw contractInvalid(path, 'it has no inputs and outputs');
  checkReferences(path, contract);
  return contract;
}

/** Writes a contract as `trtforge.contract/1`, over another one only with --force. Throws TF_WRITE_FAILED, TF_OUTPUT_OF_OTHER_KIND. */
export function writeContract(path: string, contract: Contract): void {
  const content = `${JSON.stringify(contractFileOf(contract), null, 2)}\n`;
  assertUnedited(path, content);
  publishFile(path, content);
}

/** A contract as in its file: where it was read from and what was ignored there are left out. */
export const contractFileOf = ({ origin: _, ignored: __, ...file }: Contract): ContractFile =>
  contractSchema.parse(file);

function readOwnForm(path: string, content: unknown): Contract {
  return { ...parseForm(path, contractSchema, content), origin: { path, form: 'trtforge' }, ignored: [] };
}

/** An assertion about a name that stands for no tensor would never be checked. */
function checkReferences(path: string, contract: Contract): void {
  const inputs = namesOf(path, 'input', contract.inputs);
  const outputs = namesOf(path, 'output', contract.outputs);
  const all = new Set([...inputs, ...outputs]);
  const known = { input: inputs, output: outputs, 'input or output': all };
  const need = (kind: keyof typeof known, name: string | null, where: string) => {
    if (name === null || known[kind].has(name)) return;
    const listed = [...known[kind]].join(', ');
    throw contractInvalid(path, `${where} names "${name}", and there is no such ${kind} (${listed})`);
  };
  for (const [at, { input, output, validLength }] of contract.state.entries()) {
    need('input', input, `state.${at}.input`);
    need('output', output, `state.${at}.output`);
    need('output', validLength, `state.${at}.validLength`);
  }
  for (const assertion of contract.assertions) {
    need('input or output', assertion.tensor, `the assertion ${assertion.id}`);
    if (assertion.kind === 'monotonic')
      need('input or output', assertion.than, `the assertion ${assertion.id}`);
  }
  for (const [at, { tensor }] of contract.tolerances.entries())
    need('output', tensor, `tolerances.${at}.tensor`);
  for (const { name, ranges } of contract.profiles)
    for (const input of Object.keys(ranges)) need('input', input, `the profile ${name}`);
  need('input', contract.lengths.signal, 'lengths.signal');
  need('input', contract.lengths.stateIn, 'lengths.stateIn');
  need('output', contract.lengths.result, 'lengths.result');
  need('output', contract.lengths.stateOut, 'lengths.stateOut');
  need('input', contract.schedule?.tensor ?? null, 'schedule.tensor');
}

function namesOf(path: string, what: string, bindings: Contract['inputs']): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { name } of bindings) {
    if (names.has(name)) throw contractInvalid(path, `it has the ${what} ${name} twice`);
    names.add(name);
  }
  return names;
}

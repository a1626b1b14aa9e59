import { create } from '@bufbuild/protobuf';
import { integerAttribute } from '../../../formats/onnx/attributes.js';
import { nodeLabel, redirect, usedNames } from '../../../formats/onnx/graph.js';
import { type NodeProto, NodeProtoSchema } from '../../../formats/onnx/onnx_pb.js';
import {
  addOutputs,
  type BorderValue,
  borderValues,
  keepPart,
  nodesBetween,
} from '../../../formats/onnx/subgraph.js';
import { interfaceOf } from '../../../formats/onnx/values.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import { dropDead } from '../dead.js';
import { type Done, type Editing, impossible } from '../edited-model.js';

export interface AskedName {
  readonly from: string;
  readonly to: string;
}

/** Renames an input or an output. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export function renameValue(editing: Editing, { from, to }: AskedName): Done {
  if (from === to) return null;
  editing.known('input or output', from, [...editing.inputs.keys(), ...editing.outputs.keys()]);
  if (editing.names().has(to)) throw impossible(`The model has a value "${to}" already.`);
  const { graph } = editing;
  redirect(graph, new Map([[from, to]]));
  for (const node of graph.node) node.output = node.output.map((name) => (name === from ? to : name));
  for (const value of [...graph.input, ...graph.output, ...graph.valueInfo, ...graph.initializer])
    if (value.name === from) value.name = to;
  for (const annotation of graph.quantizationAnnotation)
    if (annotation.tensorName === from) annotation.tensorName = to;
  for (const links of [editing.inputs, editing.outputs]) {
    const renamed = [...links].map(([name, link]) => [name === from ? to : name, link] as const);
    links.clear();
    for (const [name, link] of renamed) links.set(name, link);
  }
  editing.noteRenamed(from, to);
  return `${from} is ${to}`;
}

/** Makes values inside the graph outputs. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export function markOutputs(editing: Editing, names: readonly string[]): Done {
  const added = names.filter((name) => !editing.outputs.has(name));
  addOutputs(editing.model.proto, added.map(valuesInside(editing)));
  for (const name of added) editing.outputs.set(name, { source: editing.originOf(name) });
  return added.length === 0 ? null : `output ${added.join(', ')}`;
}

/** Takes outputs away, with what they alone need. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export function dropOutputs(editing: Editing, names: readonly string[]): Done {
  for (const name of names) editing.known('output', name, editing.outputs.keys());
  const { graph } = editing;
  const left = graph.output.filter(({ name }) => !names.includes(name));
  if (left.length === 0) throw impossible('A model has an output; these are all that it has.');
  graph.output = left;
  for (const name of names) editing.outputs.delete(name);
  const dead = dropDead(editing);
  return `without ${names.join(', ')}${dead === null ? '' : `: ${dead}`}`;
}

/** Values of the graph as inputs or outputs can have them. */
function valuesInside(editing: Editing): (name: string) => BorderValue {
  const valueAt = borderValues(editing.model);
  const made = new Set([...editing.inputs.keys(), ...editing.graph.node.flatMap(({ output }) => output)]);
  made.delete('');
  return (name) => {
    editing.known('tensor', name, made);
    const value = valueAt(name);
    if (value !== undefined) return value;
    throw impossible(
      `The type of "${name}" is not known, or is no tensor's: it cannot become an input or an output.`,
    );
  };
}

/** Names of values where a part begins and ends; none: where the model does. */
export interface AskedCut {
  readonly inputs?: readonly string[];
  readonly outputs?: readonly string[];
}

/** Leaves what lies between some values. Throws TF_EDIT_UNKNOWN, and TF_EDIT_IMPOSSIBLE where something needs another input. */
export function extract(editing: Editing, { inputs: heads = [], outputs: tails = [] }: AskedCut): Done {
  const { graph, model } = editing;
  const at = valuesInside(editing);
  const outputs = tails.length > 0 ? tails : [...editing.outputs.keys()];
  const cut = new Set(heads.length === 0 ? editing.inputs.keys() : heads);
  const [begins, ends] = [[...cut].map(at), outputs.map(at)];
  const part = nodesBetween(graph, cut, outputs);
  const read = new Set([...outputs, ...[...part].flatMap(usedNames)]);
  const missing = [...editing.inputs.keys()].find((name) => read.has(name) && !cut.has(name));
  if (missing !== undefined) {
    const reader = [...part].find((node) => usedNames(node).includes(missing));
    throw impossible(
      `The cut leaves "${missing}" without a source: ${reader === undefined ? 'it is an output' : `${nodeLabel(reader)} reads it`}.`,
      `Add ${missing} to the inputs of the cut, or begin behind it.`,
    );
  }
  const inputs = begins.filter(({ name }) => read.has(name));
  const unread = heads.filter((name) => !read.has(name));
  if (inputs.length === editing.inputs.size && inputs.every(({ name }) => editing.inputs.has(name)))
    if (outputs.join('\n') === [...editing.outputs.keys()].join('\n') && part.size === graph.node.length)
      return null;
  const before = graph.node.length;
  keepPart(model.proto, part, inputs, ends);
  const link = (name: string) =>
    [
      name,
      editing.inputs.get(name) ?? editing.outputs.get(name) ?? { source: editing.originOf(name) },
    ] as const;
  const [begin, end] = [inputs.map(({ name }) => link(name)), outputs.map(link)];
  editing.inputs.clear();
  editing.outputs.clear();
  for (const [name, value] of begin) editing.inputs.set(name, value);
  for (const [name, value] of end) editing.outputs.set(name, value);
  const without = unread.length === 0 ? '' : `; no output needs ${unread.join(', ')}`;
  return `${part.size} of ${before} nodes${without}`;
}

/** The type that inputs and outputs of float32 get: all, or one by its name. */
export interface AskedType {
  readonly name?: string | undefined;
  readonly type: 'float16' | 'uint8';
}

/** Puts casts at inputs and outputs of float32; uint8 is for inputs, as it would round outputs. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE. */
export function changeTypes(editing: Editing, { name, type }: AskedType): Done {
  const { graph } = editing;
  const { inputs, outputs } = interfaceOf(editing.model.proto);
  const able = [...inputs, ...(type === 'uint8' ? [] : outputs)].filter(({ dtype }) => dtype === 'float32');
  if (name !== undefined)
    editing.known(
      `float32 ${type === 'uint8' ? 'input' : 'input or output'}`,
      name,
      able.map((value) => value.name),
    );
  const chosen = able.filter((value) => name === undefined || value.name === name).map((value) => value.name);
  const made = new Set(graph.node.flatMap(({ output }) => output));
  const passed = chosen.find((each) => editing.outputs.has(each) && !made.has(each));
  if (passed !== undefined)
    throw impossible(
      `No node makes the output ${passed}: it is an input or a weight, and has its type.`,
      `Leave it out: --drop-output ${passed}`,
    );
  const castOf = (from: string, to: string, dtype: Dtype): NodeProto =>
    create(NodeProtoSchema, {
      opType: 'Cast',
      name: `${to}_cast`,
      input: [from],
      output: [to],
      attribute: [integerAttribute('to', dtypes[dtype].onnx)],
    });
  const isAmong = (names: ReadonlyMap<string, unknown>) => chosen.filter((each) => names.has(each));
  for (const each of isAmong(editing.inputs)) {
    const inside = editing.freeName(`${each}_float32`);
    redirect(graph, new Map([[each, inside]]));
    graph.node.unshift(castOf(each, inside, 'float32'));
    editing.inputs.set(each, { ...editing.inputs.get(each)!, cast: type });
  }
  for (const each of isAmong(editing.outputs)) {
    const inside = editing.freeName(`${each}_float32`);
    redirect(graph, new Map([[each, inside]]));
    for (const node of graph.node) node.output = node.output.map((out) => (out === each ? inside : out));
    graph.node.push(castOf(inside, each, type));
    editing.outputs.set(each, { ...editing.outputs.get(each)!, cast: type });
  }
  for (const value of [...graph.input, ...graph.output])
    if (chosen.includes(value.name) && value.type?.value.case === 'tensorType')
      value.type.value.value.elemType = dtypes[type].onnx;
  graph.valueInfo = graph.valueInfo.filter((value) => !chosen.includes(value.name));
  return chosen.length === 0 ? null : `${type}: ${chosen.join(', ')}`;
}

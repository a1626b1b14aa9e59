import { editRemedy } from '../edit-steps.js';
import { definedNames, type GraphView, inOrder, nodeLabel, usedNames } from '../graph.js';
import type { NodeProto } from '../onnx_pb.js';
import type { Findings } from './findings.js';

/** Findings about names and order: values defined twice or never, cycles, nodes before their inputs, unused weights. */
export function lintGraphs(path: string, views: readonly GraphView[], findings: Findings): void {
  const scopes = new Map<GraphView, ReadonlySet<string>>();
  for (const view of views) {
    const own = definedNames(view);
    scopes.set(view, own);
    lintNames(view, findings);
    lintOrder(view, own, (name) => givenOutside(name, view, scopes), findings);
    lintUse(path, view, findings);
  }
}

function givenOutside(
  name: string,
  view: GraphView,
  scopes: ReadonlyMap<GraphView, ReadonlySet<string>>,
): boolean {
  for (let outer = view.parent; outer !== undefined; outer = outer.parent) {
    if (scopes.get(outer)?.has(name) === true) return true;
  }
  return false;
}

function lintNames(view: GraphView, findings: Findings): void {
  const seen = new Map<string, string | NodeProto>();
  const named = (what: string | NodeProto) => (typeof what === 'string' ? what : nodeLabel(what));
  const define = (name: string, what: string | NodeProto) => {
    if (name === '') return;
    const before = seen.get(name);
    if (before === undefined) seen.set(name, what);
    else
      findings.add(
        'name-duplicate',
        view.path,
        `The value "${name}" is defined twice in ${view.path}: by ${named(before)} and by ${named(what)}.`,
      );
  };
  const inputs = new Set<string>();
  for (const input of view.graph?.input ?? []) {
    if (input.name === '') findings.add('name-empty', view.path, `An input of ${view.path} has no name.`);
    define(input.name, 'an input');
    inputs.add(input.name);
  }
  for (const tensor of view.graph?.initializer ?? []) {
    if (tensor.name === '') {
      findings.add(
        'name-empty',
        view.path,
        `An initializer of ${view.path} has no name, so nothing can use it.`,
      );
    } else if (inputs.delete(tensor.name)) {
      seen.set(tensor.name, 'an initializer');
      findings.add(
        'initializer-is-input',
        view.path,
        `The initializer "${tensor.name}" is also listed as an input, so runtimes may not treat it as a constant.`,
      );
    } else define(tensor.name, 'an initializer');
  }
  for (const node of view.nodes) for (const output of node.output) define(output, node);
  for (const output of view.graph?.output ?? []) {
    if (output.name === '') findings.add('name-empty', view.path, `An output of ${view.path} has no name.`);
  }
}

/** Every input of a node must be passed by an earlier node, or from outside. */
function lintOrder(
  view: GraphView,
  own: ReadonlySet<string>,
  outside: (name: string) => boolean,
  findings: Findings,
): void {
  const defined = new Set(own);
  for (const node of view.nodes) for (const output of node.output) defined.delete(output);
  let late: { node: NodeProto; name: string } | undefined;
  for (const node of view.nodes) {
    for (const name of usedNames(node)) {
      if (name === '' || defined.has(name)) continue;
      if (own.has(name)) late ??= { node, name };
      else if (node.input.includes(name) && !outside(name)) {
        findings.add(
          'value-undefined',
          `${view.path}/${nodeLabel(node)}`,
          `${nodeLabel(node)} uses the value "${name}", which nothing defines.`,
        );
      }
    }
    for (const output of node.output) defined.add(output);
  }
  for (const output of view.graph?.output ?? []) {
    if (output.name !== '' && !defined.has(output.name) && !outside(output.name)) {
      findings.add(
        'value-undefined',
        view.path,
        `The output "${output.name}" of ${view.path} is produced by no node.`,
      );
    }
  }
  if (late !== undefined) reportDisorder(view, late, findings);
}

function reportDisorder(view: GraphView, late: { node: NodeProto; name: string }, findings: Findings): void {
  const stuck = inOrder(view.nodes).cycle;
  const where = `${view.path}/${nodeLabel(stuck[0] ?? late.node)}`;
  if (stuck.length > 0) {
    const names = stuck.slice(0, 5).map(nodeLabel).join(', ');
    findings.add(
      'graph-cycle',
      where,
      `The nodes of ${view.path} form a cycle: ${names}${stuck.length > 5 ? ', …' : ''}.`,
    );
  } else {
    findings.add(
      'nodes-unsorted',
      where,
      `${nodeLabel(late.node)} comes before the node that produces its input "${late.name}"; ONNX requires nodes in order of use.`,
    );
  }
}

function lintUse(path: string, view: GraphView, findings: Findings): void {
  const initializers = view.graph?.initializer ?? [];
  if (initializers.length === 0) return;
  const used = new Set<string>(view.graph?.output.map(({ name }) => name));
  for (const node of view.nodes) for (const name of usedNames(node)) used.add(name);
  for (const { name } of initializers) {
    if (name !== '' && !used.has(name)) {
      findings.add(
        'initializer-unused',
        view.path,
        `The initializer "${name}" is used by no node.`,
        view.parent === undefined ? editRemedy(path, ['--dead']) : undefined,
      );
    }
  }
}

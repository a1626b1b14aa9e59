import { TrtforgeError } from '../../errors.js';
import {
  type BundleMeta,
  type Layout,
  movedAxes,
  roleOfAxisName,
} from '../../formats/contract/model-meta.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import type { Component } from './component.js';
import type { BundleMismatch } from './result.js';
import { returnedAs } from './transducer.js';

export interface BundleFindings {
  readonly mismatches: readonly BundleMismatch[];
  /** Checks that could not be done, and words of the contract that name no tensor. */
  readonly warnings: readonly string[];
}

/** Checks components against the meta file and against each other; nothing is built from a bundle that contradicts itself. */
export function checkBundle(meta: BundleMeta, components: readonly Component[]): BundleFindings {
  const found = new Findings(meta);
  const by = new Map(components.map((component) => [component.name, component]));
  for (const component of components) found.layouts(component);
  const [encoder, predictor, joint] = ['encoder', 'predictor', 'joint'].map((name) => by.get(name));
  if (encoder !== undefined) checkEncoder(found, encoder);
  if (predictor !== undefined) checkPredictor(found, predictor);
  if (joint !== undefined) checkJoint(found, joint, encoder, predictor);
  return { mismatches: found.mismatches, warnings: [...meta.warnings, ...found.warnings] };
}

/** Throws TF_BUNDLE_MISMATCH that names every mismatch. */
export function rejectMismatches({ path }: BundleMeta, { mismatches }: BundleFindings): void {
  if (mismatches.length === 0) return;
  const list = mismatches.map(({ component, message }) => `${component}: ${message}`);
  throw new TrtforgeError(
    'TF_BUNDLE_MISMATCH',
    `The bundle of ${path} contradicts itself in ${mismatches.length === 1 ? 'one place' : `${mismatches.length} places`}.\n${list.join('\n')}`,
    { details: { mismatches: [...mismatches] } },
  );
}

class Findings {
  readonly mismatches: BundleMismatch[] = [];
  readonly warnings: string[] = [];
  readonly meta: BundleMeta;

  constructor(meta: BundleMeta) {
    this.meta = meta;
  }

  add(component: Component, tensor: string | null, message: string): void {
    const known = this.mismatches.some((one) => one.component === component.name && one.message === message);
    if (!known) this.mismatches.push({ component: component.name, tensor, message });
  }

  /** Ranks, named axes, fixed numbers and mel bins of every tensor that the contract names and the model has. */
  layouts(component: Component): void {
    for (const side of ['input', 'output'] as const) {
      const values = side === 'input' ? component.inputs : component.outputs;
      for (const layout of this.meta.layouts.get(`${component.name}_${side}`) ?? []) {
        const value = layout.name === null ? values[0] : values.find(({ name }) => name === layout.name);
        if (value === undefined)
          this.warnings.push(
            `The layout contract names the ${component.name}'s ${side} "${layout.name}", which the model does not have.`,
          );
        else this.#layout(component, value, layout);
      }
    }
  }

  #layout(component: Component, { name, shape }: ValueFacts, { dims }: Layout): void {
    if (shape === null) return;
    const contract = `[${dims.join(', ')}]`;
    if (shape.length !== dims.length) {
      this.add(
        component,
        name,
        `"${name}" is ${shapeText(shape)}, of rank ${shape.length}; the meta file's contract states ${contract}.`,
      );
      return;
    }
    const moved = movedAxes(dims, shape);
    if (moved.length > 0)
      this.add(
        component,
        name,
        `"${name}" is ${shapeText(shape)}; the meta file's contract states ${contract}, with ${moved.join(', ')} on another axis.`,
      );
    for (const [axis, word] of dims.entries()) {
      const size = shape[axis];
      const expected = /^\d+$/.test(word) ? Number(word) : word === 'n_mels' ? this.meta.mels : null;
      if (expected !== null && typeof size === 'number' && size !== expected)
        this.add(
          component,
          name,
          `axis ${axis} of "${name}" is ${size}; the meta file states ${word === 'n_mels' ? `${expected} mel bins` : expected}.`,
        );
    }
  }
}

const isFloat = ({ dtype }: ValueFacts): boolean => dtype?.includes('float') ?? false;
const isInteger = ({ dtype }: ValueFacts): boolean => /^u?int/.test(dtype ?? '');

/** The features: `audio_signal`, or else the first floating-point input of rank 3. */
export const featuresOf = ({ inputs }: Component): ValueFacts | undefined =>
  inputs.find(({ name }) => name === 'audio_signal') ??
  inputs.find((input) => isFloat(input) && input.shape?.length === 3);

function checkEncoder(found: Findings, encoder: Component): void {
  const { mels } = found.meta;
  const features = featuresOf(encoder);
  if (features === undefined)
    found.add(encoder, null, 'it has no floating-point input of rank 3 for the features.');
  else if (mels === null)
    found.warnings.push(
      'The meta file does not state the number of mel bins, so those of the encoder are not checked.',
    );
  if (features !== undefined && mels !== null) checkMels(found, encoder, features, mels);
  const length = encoder.inputs.find(isInteger);
  const rank = length?.shape?.length;
  if (length !== undefined && rank !== undefined && rank !== 1 && rank !== 2)
    found.add(
      encoder,
      length.name,
      `"${length.name}" is ${shapeText(length.shape)}; lengths are [B] or [B, 1].`,
    );
}

/** The axis of the mel bins is the one that the contract names so, or the only one that is neither batch nor time; else any fixed axis may be it. */
function checkMels(found: Findings, encoder: Component, { name, shape }: ValueFacts, mels: number): void {
  const dims = found.meta.layouts
    .get('encoder_input')
    ?.find((layout) => (layout.name === null || layout.name === name) && layout.dims.length === shape?.length)
    ?.dims.map((word, axis) => ({ word, axis }));
  const [named] = dims?.filter(({ word }) => /mel/i.test(word)) ?? [];
  const [only, another] = dims?.filter(({ word }) => roleOfAxisName(word) === undefined) ?? [];
  const known = named ?? (another === undefined ? only : undefined);
  const fixed = (shape ?? [])
    // The contract has a number where the model is open.
    .map((size, axis) => ({ axis, size: Number(typeof size === 'number' ? size : known?.word) }))
    .filter(({ axis, size }) => (known === undefined ? axis > 0 : axis === known.axis) && size > 0);
  const [first] = fixed;
  if (first !== undefined && fixed.every(({ size }) => size !== mels))
    found.add(
      encoder,
      name,
      `axis ${first.axis} of "${name}" is ${first.size}; the meta file states ${mels} mel bins.`,
    );
}

function checkPredictor(found: Findings, predictor: Component): void {
  const { meta } = found;
  const tokens = predictor.inputs.find(isInteger);
  if (tokens === undefined) found.add(predictor, null, 'it has no integer input for the tokens.');
  else if (tokens.shape !== null && tokens.shape.length !== 2)
    found.add(predictor, tokens.name, `"${tokens.name}" is ${shapeText(tokens.shape)}; tokens are [B, U].`);
  const states = predictor.inputs.filter(isFloat);
  for (const { name, shape } of states) {
    if (shape === null) continue;
    if (shape.length !== 3)
      found.add(predictor, name, `the state "${name}" is ${shapeText(shape)}; it must be [L, B, H].`);
    else if (typeof shape[0] !== 'number' || typeof shape[2] !== 'number')
      found.add(
        predictor,
        name,
        `the state "${name}" is ${shapeText(shape)}; layers and width of [L, B, H] must be fixed numbers.`,
      );
  }
  for (const { name, shape } of states) checkReturned(found, predictor, name, shape);
  const [first, second] = states;
  if (first?.shape && second?.shape && !sameSizes(first.shape, second.shape))
    found.add(
      predictor,
      second.name,
      `the states differ: "${first.name}" is ${shapeText(first.shape)}, "${second.name}" ${shapeText(second.shape)}.`,
    );
  const rows = predictor.embeddingRows;
  const needed = Math.max(meta.vocabulary ?? 0, (meta.blankId ?? -1) + 1);
  if (rows !== null && rows < needed)
    found.add(
      predictor,
      tokens?.name ?? null,
      `its table has ${rows} tokens; the meta file needs ${needed} (vocabulary ${meta.vocabulary ?? 'not stated'}, blank ${meta.blankId ?? 'not stated'}).`,
    );
}

/** The output of each state by names alone: shapes are what is compared. */
function returnedIn({ inputs, outputs }: Component): ReadonlyMap<string, ValueFacts> {
  const bare = ({ name }: ValueFacts) => ({ name, dtype: null, shape: null });
  const returned = returnedAs({ inputs: inputs.map(bare), outputs: outputs.map(bare) });
  return new Map(
    [...returned].map(([input, { name }]) => [input, outputs.find((output) => output.name === name)!]),
  );
}

/** A state comes back in the shape it went in. */
function checkReturned(
  found: Findings,
  predictor: Component,
  name: string,
  shape: ValueFacts['shape'],
): void {
  const returned = returnedIn(predictor).get(name);
  if (returned?.shape && shape && !sameSizes(returned.shape, shape))
    found.add(
      predictor,
      returned.name,
      `the state "${name}" goes in as ${shapeText(shape)} and comes back in "${returned.name}" as ${shapeText(returned.shape)}.`,
    );
}

function checkJoint(
  found: Findings,
  joint: Component,
  encoder: Component | undefined,
  predictor: Component | undefined,
): void {
  const { jointWidth, vocabulary, durations } = found.meta;
  const [logits] = joint.outputs;
  const width = logits?.shape?.at(-1);
  if (jointWidth === null)
    found.warnings.push('The meta file does not state the number of logits of the joint network.');
  else if (logits !== undefined && typeof width === 'number' && width !== jointWidth)
    found.add(
      joint,
      logits.name,
      `"${logits.name}" has ${width} logits; the meta file states ${jointWidth}.`,
    );
  if (
    vocabulary !== null &&
    durations !== null &&
    jointWidth !== null &&
    jointWidth !== vocabulary + 1 + durations.length
  )
    found.add(
      joint,
      logits?.name ?? null,
      `the meta file's ${jointWidth} logits are not ${vocabulary} tokens, a blank and ${durations.length} durations.`,
    );
  const { blankId, blankLabels, labels, unstated } = found.meta;
  const assumed =
    blankId === null
      ? 'the last token logit is taken for the blank'
      : `the label "${labels?.[blankId]}" makes ${blankId} the blank`;
  if (unstated.length > 0)
    found.warnings.push(
      `The meta file does not state ${unstated.join(', ')}, so that is not checked${unstated.includes('blank_id') ? `; ${assumed}` : ''}.`,
    );
  const [labelled] = blankLabels;
  if (blankId !== null && labelled !== undefined && !blankLabels.includes(blankId))
    found.add(
      joint,
      logits?.name ?? null,
      `the meta file's blank_id is ${blankId}, and its label "${labels?.[labelled]}" is at ${labelled}.`,
    );
  if (blankId !== null && vocabulary !== null && blankId > vocabulary)
    found.add(
      joint,
      logits?.name ?? null,
      `the meta file's blank ${blankId} is beyond its ${vocabulary} tokens.`,
    );
  const [fromEncoder, fromPredictor] = jointInputs(joint);
  const states = encoder === undefined ? [] : [...returnedIn(encoder).values()];
  const encoded = encoder?.outputs.find((output) => isFloat(output) && !states.includes(output));
  checkFed(found, joint, fromEncoder, encoded, 'encoder');
  checkFed(found, joint, fromPredictor, predictor?.outputs.find(isFloat), 'predictor');
}

/** The joint network's inputs: what the encoder returns, then what the predictor returns. */
export function jointInputs({
  inputs,
}: Component): readonly [ValueFacts | undefined, ValueFacts | undefined] {
  const floats = inputs.filter(isFloat);
  const encoder = floats.find(({ name }) => /^enc/i.test(name)) ?? floats[0];
  return [
    encoder,
    floats.find(({ name }) => /^(?:pred|dec)/i.test(name)) ?? floats.find((one) => one !== encoder),
  ];
}

function checkFed(
  found: Findings,
  joint: Component,
  input: ValueFacts | undefined,
  source: ValueFacts | undefined,
  from: string,
): void {
  if (!input?.shape || !source?.shape || sameSizes(input.shape, source.shape)) return;
  found.add(
    joint,
    input.name,
    `"${input.name}" is ${shapeText(input.shape)}; the ${from} outputs "${source.name}" as ${shapeText(source.shape)}.`,
  );
}

/** Equal ranks, and equal numbers wherever both are fixed. */
const sameSizes = (a: NonNullable<ValueFacts['shape']>, b: NonNullable<ValueFacts['shape']>): boolean =>
  a.length === b.length &&
  a.every((size, axis) => typeof size !== 'number' || typeof b[axis] !== 'number' || size === b[axis]);

const shapeText = (shape: ValueFacts['shape'] | undefined): string =>
  shape === null || shape === undefined ? '[…]' : `[${shape.map((size) => size ?? '?').join(', ')}]`;

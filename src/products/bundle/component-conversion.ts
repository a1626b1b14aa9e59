import { TrtforgeError } from '../../errors.js';
import { defaultFormat, formatNamed, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import type { Component } from './component.js';
import type { BundleRequest } from './options.js';

/** The part of a requested conversion that is for one component. */
export interface ComponentConversion {
  readonly options: Pick<BundleRequest, 'precision' | 'conversion'>;
  readonly warnings: readonly string[];
}

/**
 * Samples count for the components whose inputs they have, and each component has a calibration cache of its own. The others, mostly a predictor and a joint network that are small beside their encoder, get what the rest of
 * the graph gets where the format needs ranges of activations, and so does one of which nothing can be quantized (`lowerConversion`). Throws TF_CALIBRATION_INVALID where no component has samples or a cache, and what opening them throws.
 */
export function componentConversions(
  { precision, conversion }: BundleRequest,
  components: readonly Component[],
): ReadonlyMap<string, ComponentConversion> {
  const calibration = conversion?.calibration;
  const format = quantizedFormatNamed(precision ?? 'as-is');
  const choices = components.map((component): [Component, ConversionOptions | undefined] => [
    component,
    calibration === undefined
      ? conversion
      : { ...conversion, calibration: calibration.forComponent?.(component.name, component.inputs) },
  ]);
  if (calibration !== undefined && choices.every(([, chosen]) => chosen?.calibration === undefined))
    throw new TrtforgeError(
      'TF_CALIBRATION_INVALID',
      'No component has samples or a calibration cache of its own.',
      {
        remedy: `Pass samples of one: ${components.map(({ name, inputs }) => `${name} takes ${namesOf(inputs)}`).join('; ')}.`,
      },
    );
  return new Map(
    choices.map(([component, chosen]): [string, ComponentConversion] => {
      const { name, inputs } = component;
      const lacksSamples = calibration !== undefined && chosen?.calibration === undefined;
      if (!lacksSamples || format?.activations !== true)
        return [name, { options: { precision, conversion: chosen }, warnings: [] }];
      const rest = chosen?.rest ?? defaultFormat.id;
      const warning = `The ${name} is ${rest.toUpperCase()} and not ${format.label}: no sample has its inputs (${namesOf(inputs)}).`;
      const options = { precision: rest === 'fp32' ? ('as-is' as const) : rest, conversion: chosen };
      return [name, { options, warnings: [warning] }];
    }),
  );
}

/** The conversion of a component of which no node can have the precision: as the rest would be, then as it was. undefined for any other failure. */
export function lowerConversion(
  name: string,
  { options: { precision, conversion }, warnings }: ComponentConversion,
  error: { readonly code: string; readonly message: string } | null,
): ComponentConversion | undefined {
  const format = formatNamed(precision);
  if (format === undefined || !nothingConverted.has(error?.code ?? '')) return undefined;
  const rest = 'storedDtype' in format ? (conversion?.rest ?? defaultFormat.id) : 'fp32';
  const lower = rest === 'fp32' ? 'as-is' : rest;
  const warning = `The ${name} is ${lower === 'as-is' ? 'as it was' : lower.toUpperCase()} and not ${format.label}. ${error?.message}`;
  return {
    options: {
      precision: lower,
      conversion: lower === 'as-is' ? undefined : { ...conversion, calibration: undefined },
    },
    warnings: [...warnings, warning],
  };
}

const nothingConverted: ReadonlySet<string> = new Set(['TF_NOT_QUANTIZABLE', 'TF_NOT_CONVERTIBLE']);

const namesOf = (values: readonly { readonly name: string }[]): string =>
  values.map(({ name }) => name).join(', ');

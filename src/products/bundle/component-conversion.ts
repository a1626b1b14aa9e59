import { TrtforgeError } from '../../errors.js';
import { defaultFormat, formatNamed, quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import type { BundleRequest } from './bundle-request.js';
import type { Component } from './component.js';

/** What of a request for a conversion is for one component. */
export interface ComponentConversion {
  readonly options: Pick<BundleRequest, 'precision' | 'conversion'>;
  readonly warnings: readonly string[];
}

/**
 * Samples count for the components whose inputs they have, and each component has a calibration cache of its own. The others, mostly a predictor and a joint network that are small beside their encoder, get what the rest of
 * the graph gets where the format needs ranges of activations, and so does one of which nothing can be quantized; one of which nothing can be converted stays as it is. Throws TF_CALIBRATION_INVALID where no component has samples or a cache, and what opening them throws.
 */
export function componentConversions(
  { precision, conversion }: BundleRequest,
  components: readonly Component[],
): ReadonlyMap<string, ComponentConversion> {
  const calibration = conversion?.calibration;
  const format = quantizedFormatNamed(precision ?? 'as-is');
  const shared =
    formatNamed(precision) === undefined ? conversion : { ...conversion, allowUnconverted: true };
  const choices = components.map((component): [Component, ConversionOptions | undefined] => [
    component,
    calibration === undefined
      ? shared
      : { ...shared, calibration: calibration.forComponent?.(component.name, component.inputs) },
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

const namesOf = (values: readonly { readonly name: string }[]): string =>
  values.map(({ name }) => name).join(', ');

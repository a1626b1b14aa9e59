import { z } from 'zod';
import { measureSchema, outcomeSchema } from '../verify/result.js';

const count = z.number().int().nonnegative();
const dimension = z.union([z.number(), z.string(), z.null()]);

const sideSchema = z.object({
  /** As passed. */
  file: z.string(),
  /** Of everything that a plan depends on: the graph and every weight, without remarks (docs, metadata, producer). */
  digest: z.string(),
  /** Of the graph and its bodies. */
  nodes: count,
  initializers: count,
  /** Of all values, packed, wherever they are stored. */
  weightBytes: count,
});

/** A field that differs; null where the side has none. */
const fieldSchema = z.object({ field: z.string(), a: z.string().nullable(), b: z.string().nullable() });
export type FieldChange = z.infer<typeof fieldSchema>;

const typeSchema = z.object({ dtype: z.string().nullable(), shape: z.array(dimension).nullable() });
const valueSchema = typeSchema.extend({ name: z.string() });
const valuesSchema = z.object({
  added: z.array(valueSchema),
  removed: z.array(valueSchema),
  changed: z.array(z.object({ name: z.string(), a: typeSchema, b: typeSchema })),
});
export type ValueChanges = z.infer<typeof valuesSchema>;

/** The distance of B's values from A's, by `compare`'s definitions; null where there is nothing to measure (text, complex numbers, other shapes). */
const distanceSchema = z.object({
  elements: count,
  /** Elements that differ. */
  different: count,
  maxAbs: measureSchema,
  /** Where that is. */
  worst: z.array(z.number()).nullable(),
  /** Null for 64-bit integers, which are compared to their last bit. */
  maxRelative: measureSchema.nullable(),
  /** Decibels: power of A over power of the difference. */
  sqnr: measureSchema.nullable(),
});
export type WeightDistance = z.infer<typeof distanceSchema>;

/** `graph`, or the body or function that has it, by its name in A (of an added one: in B). */
const placeSchema = z.object({ graph: z.string() });
const tensorTypeSchema = z.object({ dtype: z.string(), shape: z.array(z.number()) });
const tensorSchema = placeSchema.extend({ name: z.string(), ...tensorTypeSchema.shape });
const nodeSchema = placeSchema.extend({ name: z.string(), op: z.string(), outputs: z.array(z.string()) });
const renamedSchema = placeSchema.extend({ a: z.string(), b: z.string() });

/** The result of `compare models`: a part in A and not in B is removed, one in B and not in A is added. */
export const modelComparisonSchema = z.object({
  schema: z.literal('trtforge.compare-models/1'),
  /** `pass` when the digests are equal: builds of both have one identity. Producer and metadata may differ all the same. */
  outcome: outcomeSchema.exclude(['inconclusive']),
  a: sideSchema,
  b: sideSchema,
  /** IR version, producer, name of the graph and the like. */
  facts: z.array(fieldSchema),
  /** By domain. */
  opsets: z.array(fieldSchema),
  /** By key. */
  metadata: z.array(fieldSchema),
  inputs: valuesSchema,
  outputs: valuesSchema,
  initializers: z.object({
    same: count,
    /** The same type, shape and values under another name. */
    renamed: z.array(renamedSchema),
    added: z.array(tensorSchema),
    removed: z.array(tensorSchema),
    changed: z.array(
      placeSchema.extend({
        name: z.string(),
        a: tensorTypeSchema,
        b: tensorTypeSchema,
        distance: distanceSchema.nullable(),
      }),
    ),
  }),
  nodes: z.object({
    same: count,
    /** Only their names or those of their outputs differ. */
    renamed: z.array(renamedSchema),
    added: z.array(nodeSchema),
    removed: z.array(nodeSchema),
    changed: z.array(
      placeSchema.extend({
        a: z.string(),
        b: z.string(),
        /** `op`, `inputs[0]`, `outputs[0]` or `attributes.NAME`; `distance` of attributes that are tensors. */
        changes: z.array(fieldSchema.extend({ distance: distanceSchema.nullable() })),
      }),
    ),
  }),
  functions: z.object({ added: z.array(z.string()), removed: z.array(z.string()) }),
  /** Other fields of ONNX's messages that differ, such as `value_info`; `order` where only an order differs, or a field that ONNX does not define. */
  others: z.array(placeSchema.extend({ field: z.string() })),
});
export interface ModelComparison extends z.infer<typeof modelComparisonSchema> {}

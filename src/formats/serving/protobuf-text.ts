import {
  createFileRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
} from '@bufbuild/protobuf';
import { isReflectMap, isReflectMessage, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { fromText, toText } from '@bufbuild/protobuf/txtpb';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { TrtforgeError } from '../../errors.js';
import { descriptors } from './descriptors.js';

/** Files in protobuf's text form that trtforge reads and writes: Triton's config.pbtxt, and DeepStream's configuration of nvinferserver. */
export type ServingFile = 'inference.ModelConfig' | 'nvdsinferserver.config.PluginControl';

/** A message with the field names of the file: enums by name, integers of any width as numbers, maps as objects; fields that are not there are absent. */
export type Plain = Readonly<Record<string, unknown>>;

let registry: ReturnType<typeof createFileRegistry> | undefined;

function schemaOf(file: ServingFile): DescMessage {
  registry ??= createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(descriptors, 'base64')));
  const schema = registry.getMessage(file);
  if (schema === undefined) throw new TrtforgeError('TF_INTERNAL', `${file} is not described.`);
  return schema;
}

/** Reads protobuf text; `path` is for messages. Throws TF_SERVING_CONFIG for an unknown field, a value of another type and text of another form, with the line. */
export function parseProtobufText(file: ServingFile, text: string, path: string): Plain {
  const schema = schemaOf(file);
  try {
    return plainOf(reflect(schema, fromText(schema, text)));
  } catch (cause) {
    const why = messageOf(cause);
    throw new TrtforgeError('TF_SERVING_CONFIG', `${path}, line ${faultyLine(schema, text, why)}: ${why}.`, {
      cause,
    });
  }
}

/** The same from JSON, as a server gives it; fields that are not known here are left out. Throws TF_SERVING_CONFIG. */
export function readProtobufJson(file: ServingFile, json: unknown, path: string): Plain {
  const schema = schemaOf(file);
  try {
    return plainOf(reflect(schema, fromJson(schema, json as JsonValue, { ignoreUnknownFields: true })));
  } catch (cause) {
    throw new TrtforgeError('TF_SERVING_CONFIG', `${path}: ${messageOf(cause)}.`, { cause });
  }
}

/** The text of a message that was put together with the file's own field names. Throws TF_SERVING_REFUSED for a number that no field takes. */
export function printProtobufText(file: ServingFile, message: Plain): string {
  const schema = schemaOf(file);
  try {
    return toText(schema, fromJson(schema, message as JsonValue));
  } catch (cause) {
    throw new TrtforgeError('TF_SERVING_REFUSED', `${file} cannot be written: ${messageOf(cause)}.`, {
      cause,
    });
  }
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** The parser does not name the line: the first one by which it fails in the same way. */
function faultyLine(schema: DescMessage, text: string, why: string): number {
  const lines = text.split('\n');
  let [first, last] = [1, lines.length];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (failsWith(schema, lines.slice(0, middle).join('\n'), why)) last = middle;
    else first = middle + 1;
  }
  return first;
}

function failsWith(schema: DescMessage, text: string, why: string): boolean {
  try {
    fromText(schema, text);
    return false;
  } catch (cause) {
    return messageOf(cause) === why;
  }
}

function plainOf(message: ReflectMessage): Plain {
  const plain: Record<string, unknown> = {};
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const value: unknown = message.get(field);
    const one = (each: unknown) => {
      if (isReflectMessage(each)) return plainOf(each);
      if (field.enum !== undefined) return field.enum.value[each as number]?.name ?? each;
      return typeof each === 'bigint' ? Number(each) : each;
    };
    if (field.fieldKind === 'list') plain[field.name] = Array.from(message.get(field), one);
    else if (isReflectMap(value))
      plain[field.name] = Object.fromEntries(Array.from(value, ([key, each]) => [String(key), one(each)]));
    else plain[field.name] = one(value);
  }
  return plain;
}

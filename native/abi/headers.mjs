import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The classes whose virtual functions trtforge calls or provides. `impl`: calls go to this class, which the public object points at. */
export const CLASSES = {
  IBuilder: { impl: 'VBuilder' },
  INetworkDefinition: { impl: 'VNetworkDefinition' },
  IBuilderConfig: { impl: 'VBuilderConfig' },
  IOptimizationProfile: { impl: 'VOptimizationProfile' },
  ITensor: { impl: 'VTensor' },
  ILayer: { impl: 'VLayer' },
  IHostMemory: { impl: 'VHostMemory' },
  ITimingCache: { impl: 'VTimingCache' },
  IRuntime: { impl: 'VRuntime' },
  IRuntimeConfig: { impl: 'VRuntimeConfig' },
  ICudaEngine: { impl: 'VCudaEngine' },
  IExecutionContext: { impl: 'VExecutionContext' },
  IEngineInspector: { impl: 'VEngineInspector' },
  ISerializationConfig: { impl: 'VSerializationConfig' },
  IRefitter: { impl: 'VRefitter' },
  IPluginRegistry: {},
  IParser: {},
  IParserError: {},
  IParserRefitter: {},
  ILogger: {},
  IProgressMonitor: {},
  IProfiler: {},
  IOutputAllocator: {},
};

/** The enumerations whose numbers trtforge sends or receives. */
export const ENUMS = [
  'BuilderFlag',
  'DataType',
  'EngineCapability',
  'ExecutionContextAllocationStrategy',
  'HardwareCompatibilityLevel',
  'LayerInformationFormat',
  'MemoryPoolType',
  'NetworkDefinitionCreationFlag',
  'OnnxParserFlag',
  'OptProfileSelector',
  'PreviewFeature',
  'ProfilingVerbosity',
  'RuntimePlatform',
  'SerializationFlag',
  'TacticSource',
  'TensorFormat',
  'TensorIOMode',
  'TensorLocation',
  'TilingOptimizationLevel',
];

/** Words before or after a declaration that say nothing about its place in the table. */
const DECORATION =
  /\b(?:TRT_DEPRECATED(?:_ENUM|_BECAUSE\([^)]*\))?|TRT_NODISCARD|TRTNODISCARD|TENSORRTAPI|_TENSORRT_FINAL|_TENSORRT_OVERRIDE)\b|\[\[[^\]]*\]\]/g;

/**
 * Reads a folder of TensorRT's public headers: its version, and for each class the names of its virtual functions in the order of the table,
 * destructors taking two places as the Itanium C++ ABI says.
 */
export function readHeaders(folder) {
  const text = readdirSync(folder)
    .filter((name) => /^Nv(?:Infer|Onnx).*\.h$/.test(name) && !/Safe|Consistency/.test(name))
    .sort()
    .map((name) => stripped(readFileSync(join(folder, name), 'utf8')))
    .join('\n');
  const bodies = classBodies(text);
  const names = namedTypes(text);
  const tables = new Map();
  const classes = {};
  for (const [name, { impl }] of Object.entries(CLASSES)) {
    const source = bodies.get(impl ?? name);
    if (source === undefined) continue;
    classes[name] = {
      ...(impl === undefined ? {} : { impl }),
      slots: tableOf(impl ?? name, bodies, tables).map(({ name, parameters, returns, takes }, index) => {
        const type = returns === undefined ? undefined : machineType(returns, takes, names);
        return { index, name, parameters, ...(type === undefined ? {} : { type }) };
      }),
    };
  }
  const enums = {};
  for (const name of ENUMS) {
    const values = enumValues(text, name);
    if (values !== undefined) enums[name] = values;
  }
  return { version: headerVersion(folder), classes, enums, hasParser: bodies.has('IParser') };
}

/** `major.minor.patch` of the headers, macros that stand for other macros followed. */
export function headerVersion(folder) {
  const file = join(folder, 'NvInferVersion.h');
  if (!existsSync(file))
    throw new Error(`${folder} holds no NvInferVersion.h: name the folder with TensorRT's headers.`);
  const macros = new Map(
    [...readFileSync(file, 'utf8').matchAll(/^#define\s+(\w+)\s+(\w+)/gm)].map(([, name, value]) => [
      name,
      value,
    ]),
  );
  const number = (name) => {
    const value = macros.get(name);
    return value === undefined || /^\d+$/.test(value) ? value : number(value);
  };
  return ['MAJOR', 'MINOR', 'PATCH'].map((part) => number(`NV_TENSORRT_${part}`)).join('.');
}

function stripped(source) {
  return source
    .replace(/\/\*[\s\S]*?\*\//g, ' ')
    .replace(/\/\/[^\n]*/g, ' ')
    .replace(/^[ \t]*#(?:[^\n]*\\\n)*[^\n]*/gm, ' ')
    .replace(DECORATION, ' ');
}

/** Every class definition by name: the names of its bases and the text between its braces. */
function classBodies(text) {
  const bodies = new Map();
  for (const match of text.matchAll(/\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::([^;{}()]*))?\{/g)) {
    const [whole, name, bases] = match;
    const start = match.index + whole.length;
    bodies.set(name, {
      bases: (bases ?? '')
        .split(',')
        .map((base) =>
          base
            .trim()
            .split(/[\s:]+/)
            .pop(),
        )
        .filter((base) => base !== ''),
      text: text.slice(start, closing(text, start)),
    });
  }
  return bodies;
}

/** The position of the brace that closes the block which starts at `position`. */
function closing(text, position) {
  for (let depth = 1; position < text.length; position++) {
    if (text[position] === '{') depth++;
    else if (text[position] === '}' && --depth === 0) return position;
  }
  throw new Error('A class body does not end: these headers cannot be read.');
}

function tableOf(name, bodies, tables) {
  const known = tables.get(name);
  if (known !== undefined) return known;
  const source = bodies.get(name);
  if (source === undefined) return [];
  if (source.bases.length > 1)
    throw new Error(`${name} has several bases, which these tables cannot describe.`);
  const slots = source.bases.length === 0 ? [] : [...tableOf(source.bases[0], bodies, tables)];
  for (const member of members(source.text)) addSlots(slots, member);
  tables.set(name, slots);
  return slots;
}

/** The declarations of a class body, each without its function body. */
function members(body) {
  const found = [];
  let start = 0;
  for (let position = 0; position < body.length; position++) {
    const character = body[position];
    if (character === ';' || character === '{') {
      found.push(body.slice(start, position));
      if (character === '{') position = closing(body, position + 1);
      start = position + 1;
    }
  }
  return found.map((text) =>
    text
      .replace(/\b(?:public|protected|private)\s*:/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  );
}

function addSlots(slots, declaration) {
  if (!/\bvirtual\b|\boverride\b/.test(declaration)) return;
  if (/~\s*\w+/.test(declaration)) {
    if (slots.some((slot) => slot.name === 'destroy.deleting')) return;
    slots.push({ name: 'destroy.complete', parameters: 0 }, { name: 'destroy.deleting', parameters: 0 });
    return;
  }
  const match = /([A-Za-z_]\w*)\s*\(/.exec(declaration);
  if (match === null) throw new Error(`This declaration cannot be read: ${declaration}`);
  const takes = parameterTexts(declaration, match.index + match[0].length);
  const slot = {
    name: match[1],
    parameters: takes.length,
    returns: declaration.slice(0, match.index),
    takes,
    signature: takes.join(',').replace(/\s/g, ''),
  };
  const same = (other) => other.name === slot.name && other.signature === slot.signature;
  if (!slots.some(same)) slots.push(slot);
}

/** The parameters of a declaration, each as it is written; the text itself is in no table. */
function parameterTexts(declaration, position) {
  const texts = [];
  let start = position;
  for (let depth = 1; depth > 0; position++) {
    const character = declaration[position];
    if ('(<['.includes(character)) depth++;
    else if (')>]'.includes(character)) depth--;
    if (depth === 0 || (character === ',' && depth === 1)) {
      texts.push(declaration.slice(start, position).trim());
      start = position + 1;
    }
  }
  return texts.length === 1 && texts[0] === '' ? [] : texts;
}

/** What a name of a type stands for: another name, or `enum` for an enumeration of 32 bits. */
function namedTypes(text) {
  const names = new Map();
  for (const [, name, type] of text.matchAll(/\busing\s+(\w+)\s*=\s*([\w:\s]+\*?)\s*;/g))
    names.set(name, type.replace(/\w+::/g, ''));
  for (const [, name, type] of text.matchAll(/\benum\s+(?:class\s+)?(\w+)\s*(?::\s*(?:std::)?(\w+)\s*)?\{/g))
    names.set(name, type ?? 'int');
  return names;
}

/** How the machine passes a value of these types, the pointers to what differs in width told apart. */
const MACHINE = {
  void: 'void',
  bool: 'bool',
  float: 'float',
  double: 'double',
  int: 'int32',
  int32_t: 'int32',
  uint32_t: 'uint32',
  int64_t: 'int64',
  uint64_t: 'uint64',
  size_t: 'uint64',
  cudaStream_t: 'pointer',
  cudaEvent_t: 'pointer',
  Dims32: 'dims32',
  Dims64: 'dims64',
};
const POINTED = {
  char: 'text',
  int: 'int32*',
  int32_t: 'int32*',
  int64_t: 'int64*',
  Dims32: 'dims32*',
  Dims64: 'dims64*',
};

/** `bool(text, int32)`, or undefined where a structure is passed that no code of ours passes. */
function machineType(returns, takes, names) {
  const result = machineTypeOf(returns, names);
  const passed = takes.map((text) => machineTypeOf(text, names));
  return [result, ...passed].includes(undefined) ? undefined : `${result}(${passed.join(', ')})`;
}

function machineTypeOf(text, names) {
  const plain = (words) => words.replace(/\b(?:const|virtual|struct|class)\b|\w+::/g, ' ').trim();
  let words = plain(text.replace(/=.*$/s, ''));
  let name = /^\w*/.exec(words)[0];
  while (names.has(name) && names.get(name) !== name) {
    words = plain(names.get(name)) + words.slice(name.length);
    name = /^\w*/.exec(words)[0];
  }
  const marks = words.replace(/[^*&[(]/g, '').length;
  return marks === 0 ? MACHINE[name] : marks === 1 ? (POINTED[name] ?? 'pointer') : 'pointer';
}

/** Enumerator to number, or undefined where these headers have no such enumeration. */
function enumValues(text, name) {
  const match = new RegExp(`\\benum\\s+(?:class\\s+)?${name}\\s*(?::\\s*\\w+\\s*)?\\{([^}]*)\\}`).exec(text);
  if (match === null) return undefined;
  const values = {};
  let next = 0;
  for (const item of match[1].split(',')) {
    const parts = /^\s*(\w+)\s*(?:=\s*([\w]+)\s*)?$/.exec(item);
    if (parts === null) {
      if (item.trim() !== '') throw new Error(`This enumerator of ${name} cannot be read: ${item.trim()}`);
      continue;
    }
    const [, key, value] = parts;
    const number = value === undefined ? next : /^\d+$/.test(value) ? Number(value) : values[value];
    if (number === undefined) throw new Error(`${name}::${key} has a value that cannot be read: ${value}`);
    values[key] = number;
    next = number + 1;
  }
  return values;
}

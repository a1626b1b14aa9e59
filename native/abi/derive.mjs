#!/usr/bin/env node
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readHeaders } from './headers.mjs';
import { disagreements } from './probe.mjs';
import { GENERATIONS } from './slots-header.mjs';

const USAGE = `Usage: node native/abi/derive.mjs --generation 8|10|11|rtx1 [--compiler] [--write] <include folder>...

Derives the tables of virtual functions from folders of TensorRT's public headers (one per version) and compares them with
native/abi/<generation>.json. --compiler also asks g++ for every slot. --write replaces the committed table.`;

/** What tensorrt-rtx 1.7.1 has other than TensorRT 11.1, measured with measure.py: functions it lacks, and functions that follow at the end. */
const RTX = {
  headers: '11.1.0',
  version: '1.7.1',
  classes: {
    ITensor: {
      without: ['setBroadcastAcrossBatch', 'getBroadcastAcrossBatch', 'getLocation', 'setLocation'],
    },
    INetworkDefinition: { without: ['addPluginV2', 'addPluginV3'] },
    IBuilderConfig: {
      without: [
        'setRemoteAutoTuningConfig',
        'getRemoteAutoTuningConfig',
        'setBuildRoute',
        'getBuildRoute',
        'getAllBuildRoutes',
      ],
      own: [
        ['setNbComputeCapabilities', 1, 'bool(int32)'],
        ['getNbComputeCapabilities', 0],
        ['setComputeCapability', 2, 'bool(int32, int32)'],
        ['getComputeCapability', 1],
        ['setBuildRoute', 1],
        ['getBuildRoute', 0],
        ['getAllBuildRoutes', 0],
      ],
    },
    IRuntime: {
      own: [
        ['getEngineHeaderSize', 0],
        ['getEngineValidity', 3],
      ],
    },
    IExecutionContext: { without: ['setCommunicator'] },
  },
  enums: {
    BuilderFlag: { own: { kREQUIRE_USER_ALLOCATION: 28 } },
    NetworkDefinitionCreationFlag: { without: ['kPREFER_JIT_PYTHON_PLUGINS', 'kPREFER_AOT_PYTHON_PLUGINS'] },
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    generation: { type: 'string' },
    compiler: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const { generation } = values;
if (values.help || positionals.length === 0 || !GENERATIONS.includes(generation)) {
  console.error(USAGE);
  process.exit(values.help ? 0 : 2);
}

const sets = positionals
  .map((folder) => ({ folder, ...readHeaders(folder) }))
  .sort((a, b) => compare(a.version, b.version));
const major = generation === 'rtx1' ? '11' : generation;
const foreign = sets.find(({ version }) => version.split('.')[0] !== major);
if (foreign !== undefined) {
  console.error(
    `${foreign.folder} holds headers of ${foreign.version}; generation ${generation} is derived from ${major}.x.`,
  );
  process.exit(2);
}
const problems = values.compiler
  ? sets.flatMap((set) => disagreements(set.folder, set).map((line) => `${set.version}: ${line}`))
  : [];
const table = generation === 'rtx1' ? rtxTable(sets) : { generation, ...merged(sets, problems) };
const file = new URL(`./${generation}.json`, import.meta.url);

if (values.write) writeFileSync(file, formatted(table));
else if (!existsSync(file)) problems.push(`${file.pathname} does not exist; --write makes it.`);
else problems.push(...differences(JSON.parse(readFileSync(file, 'utf8')), table));

for (const line of problems) console.error(line);
const slots = Object.values(table.classes).reduce((sum, { slots }) => sum + slots.length, 0);
console.log(
  `generation ${generation}: ${sets.map(({ version }) => version).join(', ')}: ${slots} slots of ${Object.keys(table.classes).length} classes, ` +
    (problems.length === 0 ? (values.write ? 'written' : 'as committed') : `${problems.length} problems`),
);
process.exit(problems.length === 0 ? 0 : 1);

/**
 * One table for a whole generation, as the newest version has it. An added slot carries the first version that has it there (`since`);
 * a version in between that has another function there is named in `except` (10.8.0 put a function in the middle of a table, 10.9.0 moved it to the end).
 */
function merged(sets, problems) {
  const first = sets[0].version;
  const sinceOf = (version) => (version === first ? {} : { since: version });
  const classes = {};
  const enums = {};
  for (const name of new Set(sets.flatMap(({ classes: read }) => Object.keys(read)))) {
    const having = sets.filter(({ classes: read }) => read[name] !== undefined);
    const { impl, slots } = having.at(-1).classes[name];
    const merge = (slot, index) => {
      const matches = having.map((set) => sameSlot(set.classes[name].slots[index], slot));
      const start = matches.indexOf(true);
      const except = having
        .filter((_, place) => place > start && !matches[place])
        .map(({ version }) => version);
      if (except.length > 1)
        problems.push(
          `${name} slot ${index} (${slot.name}) has other places in ${except.join(', ')}: not one generation.`,
        );
      return { ...slot, ...sinceOf(having[start].version), ...(except.length === 0 ? {} : { except }) };
    };
    classes[name] = { ...(impl === undefined ? {} : { impl }), slots: slots.map(merge) };
  }
  for (const { version, enums: numbers } of sets) {
    for (const [name, read] of Object.entries(numbers)) {
      enums[name] ??= {};
      const known = enums[name];
      for (const [key, value] of Object.entries(read)) {
        known[key] ??= { value, ...sinceOf(version) };
        if (known[key].value !== value)
          problems.push(`${name}::${key} is ${known[key].value} before ${version} and ${value} in it.`);
      }
      for (const [key, number] of Object.entries(known))
        if (read[key] === undefined && number.until === undefined) number.until = version;
    }
  }
  return { from: first, to: sets.at(-1).version, classes, enums };
}

/** tensorrt-rtx has no public headers in a repository: TensorRT 11.1's, with what was measured to differ. */
function rtxTable(sets) {
  const set = sets.find(({ version }) => version === RTX.headers) ?? sets.at(-1);
  const { classes, enums } = merged([set], []);
  for (const [name, { without = [], own = [] }] of Object.entries(RTX.classes)) {
    const kept = classes[name].slots.filter((slot) => !without.includes(slot.name));
    const added = own.map(([slotName, parameters, type]) => ({
      index: 0,
      name: slotName,
      parameters,
      ...(type === undefined ? {} : { type }),
    }));
    classes[name].slots = [...kept, ...added].map((slot, index) => ({ ...slot, index }));
  }
  for (const [name, { without = [], own = {} }] of Object.entries(RTX.enums)) {
    for (const key of without) delete enums[name][key];
    for (const [key, value] of Object.entries(own)) enums[name][key] = { value };
  }
  return { generation: 'rtx1', from: RTX.version, to: RTX.version, classes, enums };
}

/** Lines that say where a derived table is not the committed one. A committed `since` may be later than derived from fewer folders. */
function differences(committed, derived) {
  const lines = [];
  for (const [name, { slots }] of Object.entries(derived.classes)) {
    const known = committed.classes[name]?.slots ?? [];
    slots.forEach((slot, index) => {
      if (known[index] === undefined)
        lines.push(`${name} slot ${index} (${slot.name}) is not in the committed table.`);
      else if (!sameSlot(known[index], slot) && !excused(known[index], committed, derived.to))
        lines.push(`${name} slot ${index} is ${shown(slot)}, committed as ${shown(known[index])}.`);
    });
    for (const slot of known.slice(slots.length))
      if (compare(slot.since ?? committed.from, derived.to) <= 0)
        lines.push(
          `${name} slot ${slot.index} (${slot.name}) is committed as of ${slot.since ?? committed.from} but ${derived.to} lacks it.`,
        );
  }
  for (const [name, read] of Object.entries(derived.enums))
    for (const [key, { value }] of Object.entries(read)) {
      const known = committed.enums[name]?.[key];
      if (known?.value !== value)
        lines.push(`${name}::${key} is ${value}, committed as ${known?.value ?? 'nothing'}.`);
    }
  return lines;
}

/** True where the committed table itself says that this version has something else in this place. */
function excused(slot, committed, version) {
  return (slot.except ?? []).includes(version) || compare(version, slot.since ?? committed.from) < 0;
}

function sameSlot(a, b) {
  return a !== undefined && a.name === b.name && a.parameters === b.parameters && a.type === b.type;
}

function shown({ name, type }) {
  return type === undefined ? name : `${name}: ${type}`;
}

function compare(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  return (
    left.map((number, index) => number - (right[index] ?? 0)).find((difference) => difference !== 0) ?? 0
  );
}

/** One slot or number a line, so that a diff of the file reads as what changed. */
function formatted({ generation, from, to, classes, enums }) {
  const line = (value) =>
    JSON.stringify(value)
      .replaceAll('":', '": ')
      .replaceAll(',"', ', "')
      .replace(/^\{/, '{ ')
      .replace(/\}$/, ' }');
  const block = (entries, open, close) =>
    `${open}\n${entries.map((entry) => `      ${entry}`).join(',\n')}\n    ${close}`;
  const classBlock = ([name, { impl, slots }]) =>
    `    "${name}": {\n      ${impl === undefined ? '' : `"impl": "${impl}",\n      `}"slots": [\n${slots
      .map((slot) => `        ${line(slot)}`)
      .join(',\n')}\n      ]\n    }`;
  const enumBlock = ([name, numbers]) =>
    `    "${name}": ${block(
      Object.entries(numbers).map(([key, number]) => `"${key}": ${line(number)}`),
      '{',
      '}',
    )}`;
  return `{
  "schema": "trtforge.abi/1",
  "generation": "${generation}",
  "from": "${from}",
  "to": "${to}",
  "classes": {
${Object.entries(classes).map(classBlock).join(',\n')}
  },
  "enums": {
${Object.entries(enums).map(enumBlock).join(',\n')}
  }
}
`;
}

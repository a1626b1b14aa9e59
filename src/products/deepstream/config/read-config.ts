import { parseYaml } from '../../../base/text/yaml.js';
import { TrtforgeError } from '../../../errors.js';

export interface KeyEntry {
  /** As it stands in the file: what follows `=`, blanks at its end included. */
  readonly value: string;
  readonly line: number;
}

/** Group to key to value; of keys that stand there twice the last, as GLib takes it. */
export interface KeyGroups {
  readonly form: 'key-file' | 'yaml';
  readonly groups: ReadonlyMap<string, ReadonlyMap<string, KeyEntry>>;
  /** Keys that an equal one further down replaces. */
  readonly replaced: readonly { readonly key: string; readonly line: number }[];
}

/** nvinfer's own rule: these two endings are YAML, anything else a key file. */
const isYamlName = (path: string): boolean => /\.ya?ml$/.test(path);

const invalid = (path: string, line: number, why: string) =>
  new TrtforgeError('TF_SERVING_CONFIG', `${path}, line ${line}: ${why}.`, { details: { path, line } });

/** Reads a configuration of nvinfer; `path` chooses the form and is for messages. Throws TF_SERVING_CONFIG where GLib or the YAML reader rejects the file. */
export const parseKeyGroups = (text: string, path: string): KeyGroups =>
  isYamlName(path) ? parseYamlGroups(text, path) : parseKeyFile(text, path);

/** GLib's key file, as strict as GLib 2.74 was seen to be (differential test over its library). */
function parseKeyFile(text: string, path: string): KeyGroups {
  const groups = new Map<string, Map<string, KeyEntry>>();
  const replaced: { key: string; line: number }[] = [];
  let group: Map<string, KeyEntry> | undefined;
  for (const [index, whole] of text.split('\n').entries()) {
    const line = index + 1;
    const content = whole.replace(/\r$/, '').replace(/^[ \t\v\f\r]+/, '');
    if (content === '' || content.startsWith('#')) continue;
    const [, name] = /^\[(.*)\]\s*$/.exec(content) ?? [];
    if (name !== undefined) {
      if (name === '' || /[[\]\p{Cc}]/u.test(name)) throw invalid(path, line, `"[${name}]" is not a group`);
      group = groups.get(name) ?? new Map();
      groups.set(name, group);
      continue;
    }
    const at = content.indexOf('=');
    if (at < 1 || content.startsWith('['))
      throw invalid(path, line, `"${content.slice(0, 80)}" is not key=value, a [group] or a comment with #`);
    if (group === undefined) throw invalid(path, line, 'a key stands before the first [group]');
    const key = content.slice(0, at).trimEnd();
    if (/[[\]]/.test(key) && !/^[^[\]]+\[[\w.@-]+\]$/.test(key))
      throw invalid(path, line, `"${key}" is not the name of a key`);
    const before = group.get(key);
    if (before !== undefined) replaced.push({ key, line: before.line });
    group.set(key, { value: content.slice(at + 1).replace(/^\s+/, ''), line });
  }
  return { form: 'key-file', groups, replaced };
}

function parseYamlGroups(text: string, path: string): KeyGroups {
  const { content, lineOf } = parseYaml(text, path, 'TF_SERVING_CONFIG', { uniqueKeys: false });
  if (!isMapping(content)) throw invalid(path, 1, 'it has no groups');
  const groups = new Map<string, Map<string, KeyEntry>>();
  for (const [group, keys] of Object.entries(content)) {
    const line = lineOf([group]) ?? 1;
    // A key that no group has is a group without keys, which nvinfer ignores.
    const entries = Object.entries(isMapping(keys) ? keys : {}).map(([key, value]) => {
      const at = lineOf([group, key]) ?? line;
      if (typeof value === 'object' && value !== null)
        throw invalid(path, at, `${key} has a list, where nvinfer reads one text: 3;544;960`);
      return [key, { value: value === null ? '' : String(value), line: at }] as const;
    });
    groups.set(group, new Map(entries));
  }
  return { form: 'yaml', groups, replaced: [] };
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

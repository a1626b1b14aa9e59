import { z } from 'zod';
import { faultText } from '../../base/text/schema-error.js';
import { parseYaml, readYaml } from '../../base/text/yaml.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { parseProfile } from '../../engines/profiles/profile.js';
import type { SizeRange } from '../../engines/profiles/sizes.js';
import { TrtforgeError } from '../../errors.js';

export interface ComponentProfile {
  /** The component's file, relative to the folder of the models. */
  readonly onnx: string | null;
  /** By the name of an open dimension in the ONNX file. */
  readonly symbols: ReadonlyMap<string, SizeRange>;
  /** Whole shapes, by input. */
  readonly inputs: ReadonlyMap<string, ProfileRange>;
}

/** Ranges for components and dimensions that the usual defaults do not know. */
export interface ProfilesFile {
  readonly path: string;
  /** For every component. */
  readonly symbols: ReadonlyMap<string, SizeRange>;
  /** null: the file lists none, so the bundle has the usual ones. */
  readonly components: ReadonlyMap<string, ComponentProfile> | null;
}

const range = z.union([z.int().positive(), z.string()]);
const symbols = z.record(z.string(), range).nullish();
const fileSchema = z.strictObject({
  symbols,
  components: z
    .record(
      z.string().regex(/^[\w.-]+$/, 'component names are words'),
      z
        .strictObject({
          onnx: z.string().nullish(),
          symbols,
          inputs: z.record(z.string(), z.string()).nullish(),
        })
        .nullable(),
    )
    .nullish(),
});

/** Reads a `--profiles` file (YAML or JSON). Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_BUNDLE_PROFILES_INVALID. */
export const readProfilesFile = (path: string): ProfilesFile =>
  profilesOf(readYaml(path, 'TF_BUNDLE_PROFILES_INVALID').content, path);

/** The same from text; `path` is for messages. */
export const parseProfilesFile = (text: string, path: string): ProfilesFile =>
  profilesOf(parseYaml(text, path, 'TF_BUNDLE_PROFILES_INVALID').content, path);

function profilesOf(content: unknown, path: string): ProfilesFile {
  const parsed = fileSchema.safeParse(content ?? {});
  if (!parsed.success) throw invalid(path, faultText(parsed.error));
  const { components } = parsed.data;
  return {
    path,
    symbols: rangesOf(parsed.data.symbols, path),
    components:
      components === null || components === undefined
        ? null
        : new Map(
            Object.entries(components).map(([name, one]) => [
              name,
              {
                onnx: one?.onnx ?? null,
                symbols: rangesOf(one?.symbols, path),
                inputs: inputsOf(one?.inputs, path),
              },
            ]),
          ),
  };
}

function rangesOf(
  table: Readonly<Record<string, string | number>> | null | undefined,
  path: string,
): ReadonlyMap<string, SizeRange> {
  return new Map(
    Object.entries(table ?? {}).map(([name, text]) => {
      const sizes = String(text)
        .split('/')
        .map((part) => (/^\s*\d{1,9}\s*$/.test(part) ? Number(part) : Number.NaN));
      const [min = Number.NaN, opt = min, max = min] = sizes;
      if (![min, opt, max].every((size) => size > 0) || ![1, 3].includes(sizes.length))
        throw invalid(path, `"${name}: ${text}" is not MIN/OPT/MAX`);
      return [name, { min, opt, max }];
    }),
  );
}

function inputsOf(
  table: Readonly<Record<string, string>> | null | undefined,
  path: string,
): ReadonlyMap<string, ProfileRange> {
  return new Map(
    Object.entries(table ?? {}).map(([name, text]) => {
      try {
        const [range] = parseProfile(`'x':${text}`).values();
        if (range !== undefined) return [name, range];
      } catch (cause) {
        if (!(cause instanceof TrtforgeError)) throw cause;
      }
      throw invalid(path, `"${name}: ${text}" is not MIN/OPT/MAX, like 1x80x16/1x80x64/1x80x256`);
    }),
  );
}

const invalid = (path: string, why: string) =>
  new TrtforgeError('TF_BUNDLE_PROFILES_INVALID', `${path} is not a profiles file: ${why}.`);

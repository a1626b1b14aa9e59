import { homedir } from 'node:os';
import { textWithoutSecrets } from '../../../base/text/shell-line.js';

/** Variables that decide what TensorRT and trtforge find and do; no other is reported. */
const reported =
  /^(CUDA_[A-Z_]+|NVIDIA_[A-Z_]+|LD_LIBRARY_PATH|TENSORRT_[A-Z_]+|TRTEXEC|TRTFORGE_[A-Z_]+|NODE_OPTIONS|OMP_NUM_THREADS)$/;
const secret = /key|secret|token|passw|credential|auth/i;

/** A shorter value is a word or a number that texts have anyway. */
const SHORTEST_SECRET = 6;

/** Quotes and their escapes, around a name or a value. */
const QUOTES = String.raw`["'\\\\]{0,4}`;
const SECRET_NAME =
  '(?:secret|token|passw(?:or)?d|credentials?|cookie|(?:api|access|private|secret)[-_]?key)';
const VALUE = String.raw`[^\s"'\\\\,;&]{${SHORTEST_SECRET},}`;

/** Secrets by what stands before them, or by how their issuers begin them: what a line carries itself is in no variable. */
const secretForms: readonly RegExp[] = [
  // `Authorization: Bearer …` and `Bearer …`.
  new RegExp(
    String.raw`(\bauthorization${QUOTES}\s{0,4}[:=]\s{0,4}${QUOTES}(?:[\w-]{1,20} {1,4})?)${VALUE}`,
    'gi',
  ),
  new RegExp(String.raw`(\bbearer {1,4})${VALUE}`, 'gi'),
  // `AWS_SECRET_ACCESS_KEY=…` and `"api_key": "…"`, but no count, and `--password …`.
  new RegExp(
    String.raw`(${SECRET_NAME}${QUOTES}\s{0,4}[:=]\s{0,4}${QUOTES})(?!\d+\b(?!["'\\\\]))${VALUE}`,
    'gi',
  ),
  new RegExp(String.raw`(--?[\w-]{0,40}${SECRET_NAME} {1,4}${QUOTES})${VALUE}`, 'gi'),
  // `curl -u user:password`.
  new RegExp(String.raw`((?<![\w-])(?:-u|--user)[ =]{0,4}${QUOTES}[^\s:"'\\\\]{1,80}:)${VALUE}`, 'g'),
  /((?<![\w-])(?:gh[pousr]_|github_pat_|hf_|glpat-|sk-|xox[a-z]-|AKIA|ASIA|eyJ))[\w.-]{12,}/g,
];

/** Replaces the folders of a report by placeholders, and removes secrets from its texts. */
export type Redact = (text: string) => string;

/**
 * Replaces in texts: values of variables whose names sound secret, tokens and passwords by what stands before them, users, passwords and values of
 * queries in addresses; `folders` by what stands for them, and the home folder by `~`.
 */
export function redaction(
  environment: NodeJS.ProcessEnv,
  folders: Readonly<Record<string, string>> = {},
): Redact {
  // As JSON and addresses write them, too.
  const secrets = Object.entries(environment).flatMap(([name, value = '']) =>
    secret.test(name) && value.length >= SHORTEST_SECRET
      ? [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]
      : [],
  );
  const homes = [environment.HOME ?? '', homedir()].filter((home) => home.length > 1);
  const replaced = [
    ...secrets.map((value) => [value, '***'] as const),
    ...Object.entries(folders).filter(([folder]) => folder.length > 1),
    ...homes.map((home) => [home, '~'] as const),
  ].sort(([a], [b]) => b.length - a.length);
  return (text) => {
    const known = replaced.reduce((current, [value, by]) => current.replaceAll(value, by), text);
    return textWithoutSecrets(secretForms.reduce((current, form) => current.replace(form, '$1***'), known));
  };
}

/** The variables that decide what is found, without those that sound secret. */
export const reportedVariables = (environment: NodeJS.ProcessEnv): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      reported.test(name) && !secret.test(name) && value !== undefined ? [[name, value] as const] : [],
    ),
  );

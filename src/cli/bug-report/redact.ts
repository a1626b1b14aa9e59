import { homedir } from 'node:os';
import { textWithoutSecrets } from '../../base/text/address-secrets.js';

/** Variables that decide what TensorRT and trtforge find and do; no other is reported. */
const reported =
  /^(CUDA_[A-Z_]+|NVIDIA_[A-Z_]+|LD_LIBRARY_PATH|TENSORRT_[A-Z_]+|TRTEXEC|TRTFORGE_[A-Z_]+|NODE_OPTIONS|OMP_NUM_THREADS)$/;
const secret = /key|secret|token|passw|credential|auth/i;

/** A shorter value is a word or a number that texts have anyway. */
const SHORTEST_SECRET = 6;

/** What stands for the folders of a report, and removes secrets from its texts. */
export type Redact = (text: string) => string;

/**
 * Replaces in texts: values of variables whose names sound secret, users, passwords and values of queries in addresses; `folders` by what stands for
 * them, and the home folder by `~`.
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
  return (text) =>
    textWithoutSecrets(replaced.reduce((current, [value, by]) => current.replaceAll(value, by), text));
}

/** The variables that decide what is found, without those that sound secret. */
export const reportedVariables = (environment: NodeJS.ProcessEnv): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      reported.test(name) && !secret.test(name) && value !== undefined ? [[name, value] as const] : [],
    ),
  );

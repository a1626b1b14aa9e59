import type { KeyObject } from 'node:crypto';
import { plural } from '../../base/text/quantity.js';
import { makeKeys, signEngines } from '../../engines/store/sign-engines.js';
import { openTrust, signatureOptions } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import { defineCommand } from '../command.js';
import { text } from '../option.js';
import { enginesArgument, placeOptions, withPlace } from './cache-options.js';

export const keygen = defineCommand({
  examples: ['trtforge cache keygen -o trtforge-signing.pem'],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'the private key; the public one gets FILE.pub',
      default: 'trtforge-signing.pem',
      writes: true,
    }),
  },
  schema: async () => (await import('../../engines/store/result.js')).cacheKeygenSchema,
  run: async (_inputs, { output }) => makeKeys(output),
  render: (result, { line, colors }) => {
    line(
      `private  ${result.privateKey}  ${colors.dim('signs: --sign-key, TRTFORGE_SIGNING_KEY; keep it secret')}`,
    );
    line(
      `public   ${result.publicKey}  ${colors.dim('checks: --trust-key, TRTFORGE_TRUSTED_KEYS; may be published')}`,
    );
    line(`key id   ${result.keyId}`);
  },
});

export const sign = defineCommand({
  arguments: [enginesArgument],
  examples: ['trtforge cache sign resnet50 --sign-key trtforge-signing.pem'],
  options: { ...placeOptions, signKey: signatureOptions.signKey },
  schema: async () => (await import('../../engines/store/result.js')).cacheSignSchema,
  run: async (names, options, context) => {
    const { environment } = context;
    const signingKey = signingKeyOf(options.signKey, environment);
    return withPlace(options, context, undefined, (store) => signEngines(store, names, signingKey, context));
  },
  render: (result, { line }) => {
    for (const { name } of result.signed) line(name);
    line(`${plural(result.signed.length, 'engine')} signed with the key ${result.keyId}, in ${result.store}`);
  },
});

/** Throws TF_USAGE where there is none, and what reading it throws. */
function signingKeyOf(signKey: string | undefined, environment: NodeJS.ProcessEnv): KeyObject {
  const { signingKey } = openTrust({ signKey, requireSignature: false }, environment);
  if (signingKey !== null) return signingKey;
  throw new TrtforgeError('TF_USAGE', 'There is no key to sign with.', {
    remedy: 'Pass --sign-key FILE, or set TRTFORGE_SIGNING_KEY; `trtforge cache keygen` makes one.',
  });
}

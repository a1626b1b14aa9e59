import * as is from '../../base/options/kinds.js';
import { formatMs, plural } from '../../base/text/quantity.js';
import { storeOptions as stores } from '../../engines/store/open-stores.js';
import { openTrust } from '../../engines/store/trust.js';
import { outcomeExitCodes } from '../../errors.js';
import { checkStore } from '../../quality/known-answer/check-store.js';
import { defineCommand } from '../command.js';
import { option } from '../option.js';
import { enginesArgument, openStoreThere } from './cache-options.js';

export const command = defineCommand({
  arguments: [enginesArgument],
  examples: ['trtforge cache check', "trtforge cache check 'resnet*fp16' --device 1"],
  options: {
    store: stores.store,
    device: option({
      flags: '--device <number>',
      describe: 'which visible GPU runs the engines (default: 0)',
      parse: is.whole(0).parse,
    }),
  },
  schema: async () => (await import('../../quality/known-answer/check-store.js')).cacheCheckSchema,
  run: async (names, options, context) => {
    const { environment } = context;
    const store = openStoreThere(options.store, context, openTrust({}, environment));
    const result = await checkStore(store, { ...context, names, device: options.device });
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render: (result, { line, colors }) => {
    const { dim, green, red, yellow } = colors;
    const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('inconclusive') };
    for (const { name, outcome, isKnown, reason, ms } of result.engines) {
      const how = isKnown ? 'known from an earlier check' : formatMs(ms);
      line(
        `${outcome === null ? dim('skipped') : colored[outcome]}  ${name}  ${dim(outcome === null ? '' : how)}`,
      );
      if (reason !== null) line(`  ${reason}`);
    }
    const ran = result.engines.filter(({ outcome }) => outcome !== null).length;
    line(
      `${ran} of ${plural(result.engines.length, 'engine')} with a known answer checked, in ${result.store}`,
    );
    if (ran === 0) for (const reason of result.reasons) line(reason);
    const { unanswered = [] } = result;
    if (unanswered.length === 0) return;
    line(`${plural(unanswered.length, 'engine')} without a known answer. To record it from the model:`);
    for (const { record } of unanswered) line(`  ${record}`);
  },
});

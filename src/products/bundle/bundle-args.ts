import { loadArgs } from '../../engines/runtime/tensorrt/engine-options.js';
import { buildWords, storeWords, word } from '../../engines/store/build-args.js';
import type { BundleRequest } from './bundle-request.js';
import type { ProfileWishes, RangeWish } from './component-profile.js';

/** Ranges and what their options are called: `--encoder-min-t`, `--min-batch`. */
const rangeOptions: Readonly<Record<keyof Omit<ProfileWishes, 'file'>, (end: keyof RangeWish) => string>> = {
  batch: (end) => `--${end}-batch`,
  encoderTime: (end) => `--encoder-${end}-t`,
  predictorTokens: (end) => `--predictor-${end}-u`,
  jointTime: (end) => `--joint-${end}-t`,
  jointTokens: (end) => `--joint-${end}-u`,
};

/** The command line that does all of a request again, as `forge` or, where only engines are to run, as `build`. */
export function bundleWords(request: BundleRequest): string[] {
  const { smoke = 'always', check, timingCache = 'auto', only = [], memoryBudget } = request;
  const isForge = check !== undefined || smoke === 'always';
  return [
    'trtforge',
    isForge ? 'forge' : 'build',
    '--meta',
    request.meta,
    ...word('--onnx-dir', request.onnxDir),
    '--outdir',
    request.outdir,
    ...buildWords(request),
    ...storeWords({ ...request, timingCache }),
    ...(only.length === 0 ? [] : ['--only', only.join(',')]),
    ...word('--profiles', request.profilesFile),
    ...rangeWords(request.ranges),
    ...(request.stage === true ? ['--stage'] : []),
    ...(request.keepTemp === true ? ['--keep-temp'] : []),
    ...word('--memory-budget', memoryBudget === undefined ? undefined : `${Math.round(memoryBudget)}B`),
    ...loadArgs(request),
    ...(isForge ? checkWords(check) : []),
  ];
}

const rangeWords = (ranges: BundleRequest['ranges'] = {}): readonly string[] =>
  (Object.keys(rangeOptions) as (keyof typeof rangeOptions)[]).flatMap((name) =>
    (['min', 'opt', 'max'] as const).flatMap((end) => word(rangeOptions[name](end), ranges[name]?.[end])),
  );

const checkWords = (check: BundleRequest['check']): readonly string[] =>
  check === undefined
    ? ['--skip', 'verify']
    : ['--seed', String(check.seed), '--samples', String(check.samples)];

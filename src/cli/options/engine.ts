import { checkModes } from '../../quality/known-answer/check-mode.js';
import { choice } from '../option.js';

/** For commands that use an engine, not for those that judge it. */
export const checkOption = choice({
  flags: '--check <when>',
  group: 'Engine loading',
  advanced: true,
  describe:
    'engines with a known answer: refuse one that gives another, or warn of it; once for each GPU, driver and library',
  choices: checkModes,
  default: 'off',
});

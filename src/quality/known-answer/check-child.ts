import { serve } from '../../base/process/supervised-child.js';
import { answerOf } from '../../engines/runtime/tensorrt/load-engine.js';
import { observeLoaded } from './observe-loaded.js';
import type { Asked } from './proof.js';

serve((request, work) =>
  answerOf(request, work, (engine, { answer, repeat }: Asked) =>
    observeLoaded(engine, { answer, repeat, signal: work.signal }),
  ),
);

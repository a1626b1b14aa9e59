import { serve } from '../../../base/process/supervised-child.js';
import { loadTaskKinds } from '../../../quality/tasks/task.js';
import { engineParity } from './engine-parity.js';
import type { ParityRequest } from './options.js';

serve(async (message, context) => {
  const { request, taskModules } = message as {
    readonly request: ParityRequest;
    /** Of the kinds of task (`TaskKind.module`). */
    readonly taskModules: readonly string[];
  };
  return engineParity(request, { ...context, taskKinds: await loadTaskKinds(taskModules) });
});

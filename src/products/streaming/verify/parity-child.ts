import { serve } from '../../../base/process/supervised-child.js';
import { loadTaskKinds } from '../../../quality/tasks/task.js';
import { engineParity } from './engine.js';
import type { ParityChildRequest } from './verify.js';

serve(async (message, context) => {
  const { request, taskModules } = message as ParityChildRequest;
  return engineParity(request, { ...context, taskKinds: await loadTaskKinds(taskModules) });
});

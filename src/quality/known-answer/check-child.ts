import { serve } from '../../base/process/supervised-child.js';
import { loadEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import { checkLoaded, type Observed } from './check-loaded.js';
import type { CheckRequest } from './observe.js';

serve(async (request, { emit, signal }): Promise<Observed> => {
  const { planPath, answer, repeat, ...options } = request as CheckRequest;
  const engine = await loadEngine(planPath, { ...options, requirePassport: false, emit, signal });
  try {
    return await checkLoaded(engine, { answer, repeat, signal });
  } finally {
    await engine.close();
  }
});

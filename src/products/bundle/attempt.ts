import type { Target } from '../../engines/identity/target.js';
import { TrtforgeError } from '../../errors.js';
import type { Explaining } from './bundle-request.js';
import type { ComponentState } from './component-state.js';
import { forComponent, type WorkContext } from './work-context.js';

export interface Attempt {
  readonly work: (context: WorkContext) => Promise<void>;
  /** What made a new engine; null where none was made. */
  readonly built: (() => Target | null) | undefined;
}

/**
 * Work on one component. A failure is remembered there, with the known issues its lines show, and thrown on; issues that work shows which goes well are
 * remembered too.
 */
export async function attempt(
  state: ComponentState,
  { work, built }: Attempt,
  bundle: WorkContext,
  explain: Explaining | undefined,
): Promise<void> {
  const context = forComponent(bundle, state.name);
  try {
    if (explain === undefined) return await work(context);
    const { issues } = await explain((emit) => work({ ...context, emit }), {
      emit: context.emit,
      model: state.onnx,
      built,
    });
    for (const { id, severity, cause, remedy } of issues)
      if (severity !== 'note') state.told.add(`${cause} ${remedy} (${id})`);
  } catch (error) {
    if (error instanceof TrtforgeError) state.failure ??= error;
    throw error;
  }
}

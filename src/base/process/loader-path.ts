/**
 * The environment with these folders first in LD_LIBRARY_PATH. An empty item would be the working folder, from which no library is loaded: none is written
 * and none is passed on.
 */
export function withLoaderPath(env: NodeJS.ProcessEnv, folders: readonly string[] = []): NodeJS.ProcessEnv {
  const items = [...folders, ...(env.LD_LIBRARY_PATH ?? '').split(':')].filter((item) => item !== '');
  const { LD_LIBRARY_PATH: _, ...others } = env;
  return items.length === 0 ? others : { ...others, LD_LIBRARY_PATH: items.join(':') };
}

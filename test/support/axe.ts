import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** What axe finds wrong with an open page: rule and elements. */
export async function axeFaults(page: Page): Promise<string[]> {
  // By the protocol: the page's policy lets no other script in.
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await (
      globalThis as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      }
    ).axe.run();
    return violations.map(({ id, nodes }) =>
      `${id}: ${nodes.map(({ html }) => html).join(' ')}`.slice(0, 400),
    );
  });
}

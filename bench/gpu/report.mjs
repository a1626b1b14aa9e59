const number = (value) =>
  value === null || value === undefined
    ? '–'
    : String(Number(value.toPrecision(Math.abs(value) >= 1000 ? 5 : 4)));

/** The report as Markdown: a table per case, and what went wrong in it. */
export function markdown({ at, gpu, driver, tensorrt, peers, missing, rounds, cases }) {
  const lines = [
    '# trtforge on a GPU, beside its peers',
    '',
    `${at.slice(0, 10)}, ${gpu}, driver ${driver}, TensorRT ${tensorrt}; ${rounds} rounds in turns, medians.`,
    `Peers: trtexec ${peers.trtexec ?? 'missing'}; Python ${peers.python ?? 'missing'}.`,
    ...missing.map((text) => `Missing: ${text}.`),
  ];
  for (const { name, seconds, figures, problems } of cases) {
    lines.push('', `## ${name}`, '');
    if (figures.length > 0) {
      lines.push('| what | unit | trtforge | peer | ratio | limit | met |', '|---|---|--:|--:|--:|--:|---|');
      for (const { what, unit, ours, peer, ratio, limit, met } of figures) {
        const cells = [
          what,
          unit,
          number(ours),
          number(peer),
          number(ratio),
          limit ?? '–',
          met === undefined ? '–' : met ? 'yes' : 'NO',
        ];
        lines.push(`| ${cells.join(' | ')} |`);
      }
      lines.push('');
    }
    for (const problem of problems) lines.push(`- ${problem.replaceAll('\n', ' ')}`);
    lines.push(`- ${seconds.toFixed(0)} s`);
  }
  return `${lines.join('\n')}\n`;
}

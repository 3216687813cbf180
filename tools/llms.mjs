/** Writes `docs/llms.txt` from the shelves of `docs/README.md`: each page as a link with its question, for coding agents. */

const LINK = /\[([^\]]+)\]\(([\w-]+\.md|\.\.\/[\w-]+\.md)(?:#[\w-]+)?\)/g

/** @returns the text, in the format of llmstxt.org; links are relative to `docs/`. */
export function llmsText(index, description) {
  const lines = [
    '# relayscope',
    '',
    `> ${description}`,
    '',
    'Short version for a small context: [llms-small.txt](llms-small.txt). `npx relayscope docs <word>` prints these pages.',
  ]
  for (const line of index.split('\n')) {
    const shelf = /^## (.+)/.exec(line)
    if (shelf) lines.push('', `## ${shelf[1]}`, '')
    const [, question, links] = /^\| (.+?) \| (.*\]\(.*) \|$/.exec(line) ?? []
    if (links) for (const [, title, path] of links.matchAll(LINK)) lines.push(`- [${title}](${path}): ${question}`)
  }
  return `${lines.join('\n')}\n`
}

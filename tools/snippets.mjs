/** Puts code into the documents from the examples that a test runs: a document never has code of its own. */
import { readFileSync } from 'node:fs'

const FROM = /<!-- from (\S+)#([\w-]+) -->\n```(\w+)\n[\s\S]*?```/g

/** The lines between `// #region name` and `// #endregion` of `text`, their common indentation removed. */
export function regionOf(text, name) {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.trim() === `// #region ${name}`)
  const end = lines.findIndex((line, i) => i > start && line.trim() === '// #endregion')
  if (start < 0 || end < 0) throw new Error(`no region ${name}`)
  const region = lines.slice(start + 1, end)
  const indent = Math.min(...region.filter((line) => line.trim()).map((line) => line.search(/\S/)))
  return region.map((line) => line.slice(indent)).join('\n')
}

const EMPTY = /<!-- from \S+ -->(?!\n```\w+\n)/

/** Replaces each block after a `from` comment by the code of the file that it names, relative to `root`. @throws Error for a comment without a block. */
export function fillSnippets(markdown, root) {
  const [empty] = EMPTY.exec(markdown) ?? []
  if (empty) throw new Error(`no code block follows ${empty}`)
  return markdown.replaceAll(FROM, (_block, path, name, language) => {
    const region = regionOf(readFileSync(new URL(path, root), 'utf8'), name)
    return `<!-- from ${path}#${name} -->\n\`\`\`${language}\n${region}\n\`\`\``
  })
}

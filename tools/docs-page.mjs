/** Renders a page of `docs/` as HTML for the dashboard, which serves it: headings, paragraphs, lists, tables and code. */

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text) => text.replace(/[&<>"]/g, (character) => ENTITIES[character])

/** Links lead to other files, which are not served: their text stays. */
const inline = (text) =>
  escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<b>$1</b>')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')

const cells = (line) => line.replace(/^\|\s*|\s*\|$/g, '').split(/\s*(?<!\\)\|\s*/)
const row = (line, tag) =>
  `<tr>${cells(line)
    .map((cell) => `<${tag}>${inline(cell)}</${tag}>`)
    .join('')}</tr>`

function blockOf(block) {
  const lines = block.split('\n')
  const [, marks, title] = /^(#+) (.*)$/.exec(lines[0]) ?? []
  if (marks) {
    const id = title.toLowerCase().replace(/[^\w]+/g, '-')
    const rest = lines.slice(1).join('\n')
    return `<h${marks.length} id="${id}">${inline(title)}</h${marks.length}>${rest ? blockOf(rest) : ''}`
  }
  if (lines[0].startsWith('```')) return `<pre>${escaped(lines.slice(1, -1).join('\n'))}</pre>`
  if (lines[0].startsWith('|'))
    return `<table><thead>${row(lines[0], 'th')}</thead><tbody>${lines
      .slice(2)
      .map((line) => row(line, 'td'))
      .join('')}</tbody></table>`
  if (lines[0].startsWith('- '))
    return `<ul>${block
      .slice(2)
      .split('\n- ')
      .map((item) => `<li>${inline(item)}</li>`)
      .join('')}</ul>`
  return `<p>${inline(block)}</p>`
}

/** The HTML of `markdown`, without the elements around it. */
export function docsPage(markdown) {
  const parts = markdown
    .replace(/<!--[\s\S]*?-->\n?/g, '')
    .trim()
    .split(/\n(?=```\w)|(?<=\n```)\n/)
  const blocks = parts.flatMap((part) =>
    part.startsWith('```') ? [part.trim()] : part.split(/\n{2,}/).map((block) => block.trim()),
  )
  return blocks
    .filter((block) => block !== '')
    .map(blockOf)
    .join('\n')
}

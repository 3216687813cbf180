/** `relayscope docs`: the packaged documentation, page by page or by words. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { parse } from './arguments.js'
import { print } from './text/table.js'

export const DOCS_HELP = `relayscope docs: prints the documentation of this version, offline

  npx relayscope docs                     the pages, each with its question
  npx relayscope docs quickstart          one page
  npx relayscope docs inspector_timeout   the sections and lines that contain a word
  npx relayscope docs ws key              the same for all of several words, then the sections with them

Exit codes: 0 found; 1 no page contains it; 2 wrong usage.
`

/** Sections are printed whole, so only a few of them. */
const SECTIONS_MAX = 3
const LINES_MAX = 30

/** The folder, from `dist` and from `src/cli`. */
const FOLDERS = ['../docs/', '../../docs/'].map((path) => new URL(path, import.meta.url))

interface Output {
  write(text: string): unknown
}

interface Section {
  page: string
  heading: string
  lines: string[]
}

/** Returns the sections of a page: each heading outside code blocks with the lines up to the next one. */
function sectionsOf(page: string, text: string): Section[] {
  const sections: Section[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const heading = isCode ? null : /^#{1,4} (.*)/.exec(line)
    if (heading) sections.push({ page, heading: heading[1] as string, lines: [line] })
    else sections.at(-1)?.lines.push(line)
  }
  return sections
}

/** The first question below the title, with the sentences before it; without one the first sentence. */
function questionOf(text: string): string {
  const [, paragraph = ''] = /^# .*\n\n((?:(?!\n\n)[\s\S])*)/m.exec(text) ?? []
  const sentence = /^[^?]*\?(?=\s|$)|^.*?[.!](?=\s|$)/.exec(paragraph.replaceAll('\n', ' '))
  return (sentence?.[0] ?? paragraph).replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}

function showMatches(words: readonly string[], pages: ReadonlyMap<string, string>, output: Output): boolean {
  const lower = words.map((word) => word.toLowerCase())
  const isIn = (text: string) => lower.every((word) => text.toLowerCase().includes(word))
  const all = [...pages].flatMap(([page, text]) => sectionsOf(page, text))
  const titled = all.filter(({ heading }) => isIn(heading))
  for (const { page, lines } of titled.slice(0, SECTIONS_MAX))
    print(output, `docs/${page}.md\n\n${lines.join('\n').trim()}\n`)
  const found = all
    .filter((section) => !titled.slice(0, SECTIONS_MAX).includes(section))
    .flatMap(({ page, heading, lines }) => {
      const place = `docs/${page}.md, ${heading}`
      const matches = lines.filter(isIn).map((line) => `${place}: ${line.trim()}`)
      // Several words are rarely in one line.
      return matches.length > 0 || !isIn(lines.join('\n')) ? matches : [place]
    })
  for (const line of found.slice(0, LINES_MAX)) print(output, line)
  if (found.length > LINES_MAX) print(output, `${found.length - LINES_MAX} more lines contain it`)
  return titled.length + found.length > 0
}

/**
 * Prints the list of pages, the page with this name, or what contains the words.
 *
 * @returns the exit code.
 * @throws UsageError
 */
export function docs(args: readonly string[], output: Output, complaints: Output): number {
  const { values, positionals } = parse(args, { help: { type: 'boolean', short: 'h' } } as const)
  if (values.help) {
    print(output, DOCS_HELP.trimEnd())
    return 0
  }
  const folder = FOLDERS.find((each) => existsSync(each))
  if (folder === undefined) throw new Error('The package was installed without its documentation')
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
  const pages = new Map(names.map((name) => [name.slice(0, -3), readFileSync(new URL(name, folder), 'utf8')]))
  if (positionals.length === 0) {
    for (const [page, text] of pages) if (page !== 'README') print(output, `${page.padEnd(28)}${questionOf(text)}`)
    return 0
  }
  const phrase = positionals.join(' ')
  const page = pages.get(
    phrase
      .toLowerCase()
      .replace(/^docs\//, '')
      .replace(/\.md$/, ''),
  )
  if (page !== undefined) print(output, page.trimEnd())
  else if (!showMatches(positionals, pages, output)) {
    print(complaints, `relayscope: no page contains "${phrase}". relayscope docs lists the pages`)
    return 1
  }
  return 0
}

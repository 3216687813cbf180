/**
 * The docs as a site: `npm ci --ignore-scripts --prefix tools/docs-site`, then
 * `tools/docs-site/node_modules/.bin/vitepress dev docs`. Shelves, titles and descriptions come from `docs/README.md`.
 */
import { readFileSync } from 'node:fs'

const index = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const { description } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

const LINK = /\[([^\]]+)\]\(([\w./-]+)\.md(?:#[\w-]+)?\)/g

/** Every page of `docs/README.md`: its shelf, title, path below the site and question. */
const pages = index.split('\n## ').flatMap((shelf) => {
  const [title = '', ...lines] = shelf.split('\n')
  return lines.flatMap((line) => {
    const [, question, links = ''] = /^\| (.+?) \| (.*) \|$/.exec(line) ?? []
    return [...links.matchAll(LINK)].map(([, text, file]) => {
      const { pathname } = new URL(file, 'http://site/docs/')
      return { shelf: title, text, question, path: pathname.slice(1) }
    })
  })
})

const shelves = [...new Set(pages.map(({ shelf }) => shelf))]

export default {
  title: 'relayscope',
  description,
  // The README links to pages, and pages link to the README: all are below the repository's root.
  srcDir: '..',
  srcExclude: ['!(docs)/**/*.md', 'AGENTS.md', 'docs/api/**'],
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: true,
  markdown: {
    config(md) {
      md.core.ruler.push('readme-is-index', ({ tokens }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.attrGet('href')
          if (href?.startsWith('../README.md')) token.attrSet('href', href.replace('README.md', 'index.md'))
        }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [{ text: 'All pages', link: '/docs/README' }],
    sidebar: shelves.map((shelf) => ({
      text: shelf,
      items: pages
        .filter((page) => page.shelf === shelf)
        .map(({ text, path }) => ({ text, link: path === 'README' ? '/' : `/${path}` })),
    })),
  },
  transformPageData(page) {
    const known = pages.find(({ path }) => `${path}.md` === page.relativePath)
    if (known?.question) page.description = known.question
  },
}

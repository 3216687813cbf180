/** Creates a project that has installed the built package, with every program of the documents in it. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const HERE = import.meta.dirname
const ROOT = join(HERE, '../..')
const INSTALLED = join(HERE, 'node_modules')

/** Examples whose regions are changes to a program of the reader's own. */
const CHANGES = /(?:acknowledgements|nestjs-gateway|mcp-sessions|event-streams)$/
const BLOCK = /<!-- from (\S+)\.m?js#([\w-]+) -->\n```(js|ts)\n([\s\S]*?)```/g

const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'))

/** Where `test/plugs/inferred-types.ts` imports from, and the packed face that stands for it. */
const FACE = /'(?:\.\.\/){2}src\/(?:adapters|plugs)?\/?([\w.]+?)(?:\/index)?\.js'/g

/** The packages of the matrix whose names start so. */
export const packagesOf = (start) => Object.keys(dependencies).filter((name) => name.startsWith(start))

/**
 * The programs that the documents show, each text once: its path in the project, its code, whether it is for a page, whether it is
 * TypeScript, and whether it is the first program of the README. The first region of an example bears its name, so that another example's import of it is found.
 */
export function shownPrograms() {
  const documents = readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)
  const shown = []
  for (const document of ['README.md', ...documents].filter((path) => path.endsWith('.md')))
    for (const [, example, region, language, code] of readFileSync(join(ROOT, document), 'utf8').matchAll(BLOCK)) {
      if (!code.includes('import ') || CHANGES.test(example) || shown.some((one) => one.code === code)) continue
      const path = shown.some((one) => one.path === `${example}.mts`) ? `${example}.${region}.mts` : `${example}.mts`
      const onPage = example.includes('/page/')
      shown.push({ path, code, onPage, typed: language === 'ts', isFirst: document === 'README.md' })
    }
  return shown
}

/** Makes the project in a temporary folder, and says where. */
export function createProject(shown) {
  const project = mkdtempSync(join(tmpdir(), 'relayscope-types-'))
  const modules = join(project, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(INSTALLED).filter((one) => !one.startsWith('.')))
    symlinkSync(join(INSTALLED, name), join(modules, name))
  symlinkSync(join(ROOT, 'node_modules/zod'), join(modules, 'zod'))
  for (const part of ['package.json', 'dist'])
    cpSync(join(ROOT, part), join(modules, 'relayscope', part), { recursive: true })
  cpSync(join(HERE, 'programs'), join(project, 'programs'), { recursive: true })
  const inferred = readFileSync(join(ROOT, 'test/plugs/inferred-types.ts'), 'utf8')
  const faces = inferred.replace(FACE, (_, face) => `'relayscope${face === 'index' ? '' : `/${face}`}'`)
  writeFileSync(join(project, 'programs/inferred-types.ts'), faces)
  for (const { path, code } of shown) {
    mkdirSync(join(project, dirname(path)), { recursive: true })
    writeFileSync(join(project, path), code)
  }
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
  // As a type root, so that the other packages' declarations resolve to this one too.
  for (const types of packagesOf('node-types-')) {
    mkdirSync(join(project, types))
    symlinkSync(join(INSTALLED, types), join(project, types, 'node'))
  }
  return project
}

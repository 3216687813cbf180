/**
 * Turns a `.lua` file into a JavaScript module. A plain file is one script or a part of others, and its text is the
 * default export. A file with sections holds several: `--@script name` starts a script, which the object `scripts` has
 * under that name, and `--@part name` starts lines that its scripts share. A line `--@include ./other.lua` inserts
 * another file, `--@include name` an earlier part of the same file. Lines that contain only a comment are left out, and
 * an indent becomes one space. Used by the package build, by Vitest and by every other bundle of `src`.
 */
import { readFile } from 'node:fs/promises'

const DIRECTIVE = /^--@(?:(include) (\.{1,2}\/\S+\.lua|\w+)|(script|part) (\w+))$/
const EXPECTED = '"--@include ./file.lua", "--@include part", "--@part name" or "--@script name"'

/** @throws Error for an unknown directive, part or name, and for text that cannot be shortened line by line. */
export function luaModule(text) {
  const imports = []
  const sections = [{ kind: 'text', name: '', parts: [''] }]
  for (const line of text.trimEnd().split('\n')) {
    const section = sections.at(-1)
    const [directive, , included, kind, name] = DIRECTIVE.exec(line) ?? []
    if (kind) {
      if (sections.some((one) => one.name === name)) throw new Error(`"${name}" is defined twice`)
      sections.push({ kind, name, parts: [''] })
    } else if (directive) {
      const index = sections.findIndex((one) => one.kind === 'part' && one !== section && one.name === included)
      if (!included.startsWith('.') && index < 0) throw new Error(`Unknown part "${included}"`)
      if (included.startsWith('.') && !imports.includes(included)) imports.push(included)
      section.parts.push(index < 0 ? `file${imports.indexOf(included)}` : `section${index}`, '')
    } else if (/^\s*--@/.test(line)) throw new Error(`Unknown directive "${line}": expected ${EXPECTED}`)
    else if (/\[=*\[/.test(line)) throw new Error(`Long strings are not supported: ${line}`)
    else if (!/^\s*(--.*)?$/.test(line)) section.parts[section.parts.length - 1] += `${line.replace(/^\s+/, ' ')}\n`
  }
  const quoted = (part) => `\`${part.replace(/[\\`]|\$(?=\{)/g, '\\$&')}\``
  const textOf = ({ parts }) => parts.map((part, i) => (i % 2 ? part : quoted(part))).join(' + ')
  const [whole, ...named] = sections
  const head = imports.map((path, i) => `import file${i} from ${JSON.stringify(path)}\n`).join('')
  if (named.length === 0) return `${head}export default ${textOf(whole)}\n`
  if (whole.parts.join('')) throw new Error('Text before the first section')
  const constants = named.map((section, i) => `const section${i + 1} = ${textOf(section)}\n`)
  const scripts = named.flatMap(({ kind, name }, i) => (kind === 'script' ? [`${name}: section${i + 1}`] : []))
  return `${head}${constants.join('')}export const scripts = { ${scripts.join(', ')} }\n`
}

/** @type {import('esbuild').Plugin} */
export const esbuildLua = {
  name: 'lua',
  setup: (build) =>
    build.onLoad({ filter: /\.lua$/ }, async ({ path }) => ({
      contents: luaModule(await readFile(path, 'utf8')),
      loader: 'js',
    })),
}

/** @type {import('vite').Plugin} */
export const viteLua = {
  name: 'lua',
  enforce: 'pre',
  transform: (text, id) => (id.endsWith('.lua') ? { code: luaModule(text), map: null } : undefined),
}

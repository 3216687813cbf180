/**
 * Turns a `.lua` file into a JavaScript module whose default export is the text of the script. A line `--@include
 * ./other.lua` becomes an import of that file, and its text replaces the line. Other lines that contain only a comment
 * are left out. Used by the package build, by Vitest and by every other bundle of `src`.
 */
import { readFile } from 'node:fs/promises'

const INCLUDE = /^--@include (\.{1,2}\/\S+\.lua)$/

/** @throws Error for a directive that is not an include, and for text that cannot be shortened line by line. */
export function luaModule(text) {
  const imports = []
  const parts = ['']
  for (const line of text.trimEnd().split('\n')) {
    const include = INCLUDE.exec(line)
    if (include) {
      imports.push(`import part${imports.length} from ${JSON.stringify(include[1])}\n`)
      parts.push('')
    } else if (/^\s*--@/.test(line)) throw new Error(`Unknown directive "${line}": expected "--@include ./file.lua"`)
    else if (/\[=*\[/.test(line)) throw new Error(`Long strings are not supported: ${line}`)
    else if (!/^\s*(--.*)?$/.test(line)) parts[parts.length - 1] += `${line}\n`
  }
  const quoted = parts.map((part) => `\`${part.replace(/[\\`]|\$(?=\{)/g, '\\$&')}\``)
  return `${imports.join('')}export default ${quoted.map((part, i) => (i === 0 ? part : `part${i - 1} + ${part}`)).join(' + ')}\n`
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

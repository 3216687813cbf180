/** The public subpaths, read from the one place that names them: what is built, documented and searched for dead code. */
import { readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** The source of each, by the name of its built file below `dist`, without an ending. */
export const FACES = Object.fromEntries(
  Object.values(exports).flatMap((face) => {
    const [, name] = /^\.\/dist\/(.*)\.js$/.exec(face.default ?? '') ?? []
    return name === undefined ? [] : [[name, `src/${name}.ts`]]
  }),
)

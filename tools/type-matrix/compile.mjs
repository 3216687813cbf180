/**
 * Compiles configurations with a compiler that has an API, each file parsed once for all of them: `node compile.mjs
 * <package of the compiler> <tsconfig>…`. Prints `{ config, found }` per line, for files of the project only: conflicts
 * between other packages' declarations are not reported.
 */
import { createRequire } from 'node:module'
import { isOurs } from './ours.mjs'

const [compiler, ...configs] = process.argv.slice(2)
const ts = createRequire(import.meta.url)(compiler)
const sources = new Map()

/** A host that shares a file between the programs that parse it alike. */
function sharingHost(options) {
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile
  host.getSourceFile = (path, how, ...rest) => {
    const key = [path, how.impliedNodeFormat, options.moduleResolution].join(' ')
    if (!sources.has(key)) sources.set(key, read(path, how, ...rest))
    return sources.get(key)
  }
  return host
}

const plain = ({ file, start, code, messageText }) => ({
  file: file?.fileName,
  line: file && file.getLineAndCharacterOfPosition(start).line + 1,
  code,
  text: ts.flattenDiagnosticMessageText(messageText, '\n'),
})

for (const config of configs) {
  const { options, fileNames, errors } = ts.getParsedCommandLineOfConfigFile(config, {}, ts.sys)
  const program = ts.createProgram(fileNames, options, sharingHost(options))
  const ours = program.getSourceFiles().filter(({ fileName }) => isOurs(fileName, config))
  const found = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...ours.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
  ]
  console.log(JSON.stringify({ config, found: found.map(plain) }))
}

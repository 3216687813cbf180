/** `compile.mjs` for the native compiler, which has another API: `node compile-native.mjs <package> <tsconfig>…`. */
import { readFileSync } from 'node:fs'
import { isOurs } from './ours.mjs'

const [compiler, ...configs] = process.argv.slice(2)
const { API } = await import(`${compiler}/unstable/sync`)
const api = new API()

const flat = ({ text, messageChain = [] }) => [text, ...messageChain.map(flat)].join('\n')

const plain = ({ fileName, pos, code, ...message }) => ({
  file: fileName,
  line: fileName && readFileSync(fileName, 'utf8').slice(0, pos).split('\n').length,
  code,
  text: flat(message),
})

for (const config of configs) {
  const { program } = api.updateSnapshot({ openProjects: [config] }).getProject(config)
  const ours = program.getSourceFileNames().filter((file) => isOurs(file, config))
  const found = [
    ...program.getConfigFileParsingDiagnostics(),
    ...program.getProgramDiagnostics(),
    ...ours.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
  ]
  console.log(JSON.stringify({ config, found: found.map(plain) }))
  api.updateSnapshot({ closeProjects: [config] })
}
api.close()

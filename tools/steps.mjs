/** Renders the steps of delivery in their design page, from the table that the code uses. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'

const PLACE = /<!-- steps -->[\s\S]*<!-- \/steps -->/

/** Returns a function that renders the steps where a document has a place for them. `root` is that of the repository. */
export async function stepsRenderer(root) {
  const source = readFileSync(new URL('src/redis/delivery/steps.ts', root), 'utf8')
  const options = { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } }
  const code = ts.transpileModule(source, options).outputText
  const { STEPS } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  const rows = Object.entries(STEPS).map(([name, { letter, does }]) => `| \`${letter}\` | \`${name}\` | ${does} |`)
  const table = ['| step | function | what it does |', '|---|---|---|', ...rows].join('\n')
  return (markdown) => markdown.replace(PLACE, `<!-- steps -->\n\n${table}\n\n<!-- /steps -->`)
}

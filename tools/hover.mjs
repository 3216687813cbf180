/**
 * Puts the descriptions of schemas into the declarations, so that an editor shows them for the fields of inputs, options
 * and records. A field that has a comment in its declaration keeps it; otherwise it gets the comment from the source that
 * declares it, or else the `.describe()` of its schema.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import ts from 'typescript'
import { esbuildLua } from './lua.mjs'

const SCHEMA = /\bZodObject</

/** Loads the source files, with one copy of each schema. */
async function loadSources(root, files) {
  // Inside the package, so that the modules find its dependencies.
  const outdir = mkdtempSync(join(root, 'dist/.hover-'))
  try {
    await build({
      absWorkingDir: root,
      entryPoints: files.map((file) => ({ in: join(root, 'src', file), out: file })),
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      outdir,
      plugins: [esbuildLua],
      define: { RELAYSCOPE_VERSION: '""', DASHBOARD_SCRIPT: '""', DASHBOARD_STYLE: '""' },
      logLevel: 'error',
    })
    const loaded = new Map()
    for (const file of files) loaded.set(file, await import(pathToFileURL(join(outdir, `${file}.js`)).href))
    return loaded
  } finally {
    rmSync(outdir, { recursive: true, force: true })
  }
}

/** The object schema in optional, nullable, list and other schemas of one value, and its description. */
function unwrap(schema) {
  let description
  for (let one = schema; one?._zod; one = one._zod.def.innerType ?? one._zod.def.element ?? one._zod.def.in) {
    description ??= one.description
    if (one._zod.def.type === 'object') return { description, shape: one._zod.def.shape }
  }
  return { description, shape: undefined }
}

/** The type literals in `ZodObject<{…}>`, also inside other types. */
function literalsIn(node) {
  if (!node) return []
  if (ts.isTypeLiteralNode(node)) return [node]
  if (ts.isIntersectionTypeNode(node)) return node.types.flatMap(literalsIn)
  for (const each of node.typeArguments ?? []) {
    const found = literalsIn(each)
    if (found.length > 0) return found
  }
  return []
}

const commentOf = (symbol, checker) => {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker))
  const tags = symbol
    .getJsDocTags(checker)
    .map(({ name, text: parts }) => `@${name} ${ts.displayPartsToString(parts)}`.trim())
  return [text, ...tags].filter((part) => part !== '').join(' ')
}

/** Returns `texts`, declarations by file, with a comment for each field of a public schema. `entries` are the public files. */
export async function withHoverTexts(root, texts, entries) {
  const files = [...texts].filter(([, text]) => SCHEMA.test(text)).map(([file]) => file.replace(/\.d\.ts$/, '.ts'))
  const loaded = await loadSources(root, files)
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const sources = [...files, ...entries].map((file) => join(root, 'src', file))
  const program = ts.createProgram(sources, { ...options, noEmit: true, skipLibCheck: true })
  const checker = program.getTypeChecker()
  const exportsOf = (file) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(join(root, 'src', file)))
    return module ? checker.getExportsOfModule(module) : []
  }
  const publicNames = new Set(entries.flatMap((file) => exportsOf(file).map(({ name }) => name)))

  /** Comments of the fields of the schema `name`, from the source. */
  function sourceComments(file, name) {
    const symbol = exportsOf(file).find((one) => one.name === name)
    const shape = symbol && checker.getTypeOfSymbol(symbol).getProperty('shape')
    const fields = shape ? checker.getTypeOfSymbol(shape).getProperties() : []
    return new Map(fields.map((field) => [field.name, commentOf(field, checker)]))
  }

  const described = new Map(texts)
  for (const file of files) {
    const declared = file.replace(/\.ts$/, '.d.ts')
    const text = texts.get(declared)
    const source = ts.createSourceFile(declared, text, ts.ScriptTarget.Latest, true)
    const insertions = []
    const visit = (literal, schema, comments) => {
      const { shape } = unwrap(schema)
      for (const member of literal.members) {
        if (!ts.isPropertySignature(member)) continue
        const name = member.name.text
        const field = shape?.[name]
        if (ts.getJSDocCommentsAndTags(member).length === 0) {
          const comment = comments?.get(name) || unwrap(field).description
          if (comment) insertions.push([member.getStart(), `/** ${comment.replaceAll('*/', '* /')} */\n`])
        }
        for (const inner of literalsIn(member.type)) visit(inner, field)
      }
    }
    for (const statement of source.statements) {
      if (!ts.isVariableStatement(statement)) continue
      for (const { name, type } of statement.declarationList.declarations) {
        const schema = publicNames.has(name.text) ? loaded.get(file)[name.text] : undefined
        const literals = schema?._zod ? literalsIn(type) : []
        const comments = literals.length > 0 ? sourceComments(file, name.text) : undefined
        for (const literal of literals) visit(literal, schema, comments)
      }
    }
    let result = text
    for (const [at, comment] of insertions.sort(([a], [b]) => b - a))
      result = result.slice(0, at) + comment + result.slice(at)
    described.set(declared, result)
  }
  return described
}

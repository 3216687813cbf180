/**
 * Removes declarations that no public module refers to. TypeScript declares everything that any module exports, and half
 * of that is internal. Works on the text of each file, so the comments and names of what remains don't change.
 */
import { posix } from 'node:path'
import ts from 'typescript'

/** The names that a statement declares: `null` for imports, for exports of other modules and for `export {}`. */
function namesOf(statement) {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.text)
  return statement.name ? [statement.name.text] : null
}

function identifiersIn(node, found = new Set()) {
  if (ts.isIdentifier(node)) found.add(node.text)
  ts.forEachChild(node, (child) => void identifiersIn(child, found))
  return found
}

/** Text of an import with the names that are used, or `''`. An import for its effects is kept. */
function shortenImport(statement, used) {
  const { importClause, moduleSpecifier } = statement
  if (!importClause) return statement.getFullText()
  const { name, namedBindings } = importClause
  const type = importClause.phaseModifier === ts.SyntaxKind.TypeKeyword ? 'type ' : ''
  const names = []
  if (name && used.has(name.text)) names.push(name.text)
  if (namedBindings && ts.isNamespaceImport(namedBindings)) {
    if (used.has(namedBindings.name.text)) names.push(`* as ${namedBindings.name.text}`)
  } else if (namedBindings) {
    const kept = namedBindings.elements.filter((element) => used.has(element.name.text))
    if (kept.length > 0) names.push(`{ ${kept.map((element) => element.getText()).join(', ')} }`)
  }
  return names.length === 0 ? '' : `import ${type}${names.join(', ')} from ${moduleSpecifier.getText()};\n`
}

/**
 * Returns the texts that remain, by file. `texts` are all declarations by file, `entries` the files whose exports are public.
 * A name counts as used wherever a kept statement of any file contains it, so too much is kept and never too little.
 */
export function publicDeclarations(texts, entries) {
  const files = [...texts].map(([file, text]) => ({
    file,
    statements: ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true).statements.map((statement) => ({
      statement,
      names: namesOf(statement),
      identifiers: identifiersIn(statement),
      kept: false,
    })),
  }))
  const used = new Set()
  const keep = (one) => {
    one.kept = true
    for (const name of one.identifiers) used.add(name)
  }
  for (const { file, statements } of files)
    for (const one of statements)
      if (entries.includes(file) || (!one.names && !ts.isImportDeclaration(one.statement))) keep(one)
  const declared = files.flatMap(({ statements }) => statements.filter(({ names }) => names))
  for (let before = -1; before < used.size; ) {
    before = used.size
    for (const one of declared) if (!one.kept && one.names.some((name) => used.has(name))) keep(one)
  }

  const remaining = new Map()
  for (const { file, statements } of files) {
    const kept = statements.filter((one) => one.kept)
    const here = new Set(kept.flatMap(({ identifiers }) => [...identifiers]))
    const imports = statements
      .filter(({ statement, kept: whole }) => !whole && ts.isImportDeclaration(statement))
      .map(({ statement }) => shortenImport(statement, here))
    remaining.set(file, `${[...imports, ...kept.map(({ statement }) => statement.getFullText())].join('').trim()}\n`)
  }

  const reached = new Map()
  const follow = (file) => {
    const text = remaining.get(file)
    if (text === undefined || reached.has(file)) return
    reached.set(file, text)
    for (const [, path] of text.matchAll(/(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)\.js['"]/g))
      follow(posix.join(posix.dirname(file), `${path}.d.ts`))
  }
  for (const file of entries) follow(file)
  return reached
}

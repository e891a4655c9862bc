"""Reads {code, resolved, texts, results} as lines of JSON and says by the real grammar whether `resolved` is `code` with the texts in its
plain literals, and with `results` in the variable of that name: 'ok', 'invalid' where `code` is no Python (and `resolved` is none either), else what differs."""
import ast, io, json, re, sys, tokenize, warnings

warnings.simplefilter('ignore')
pattern = re.compile(r'\{results\[(\d{1,9})\]\}')

def parse(code):
    try:
        compile(code, 'program', 'exec', dont_inherit=True)
        return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None

def tokens(code):
    return list(tokenize.generate_tokens(io.StringIO(code, newline='').readline))

def marked(code):
    """The program with a private character in place of each reference in a plain literal, put there by token positions."""
    lines = list(io.StringIO(code, newline=''))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    pieces, at = [], 0
    for token in tokens(code):
        if token.type != tokenize.STRING or re.match(r'[a-zA-Z]*', token.string).group().lower() not in ('', 'u'):
            continue
        start = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        pieces += [code[at:start], pattern.sub(lambda m: chr(0xE000 + int(m.group(1))), code[start:end])]
        at = end
    return ''.join(pieces) + code[at:]

class Fill(ast.NodeTransformer):
    def __init__(self, texts):
        self.texts = texts
    def visit_JoinedStr(self, node):
        self.generic_visit(node)
        node.values = [one for one in node.values if not (isinstance(one, ast.Constant) and one.value == '')]
        return node
    def visit_Constant(self, node):
        if isinstance(node.value, str):
            node.value = re.sub('[\ue000-\ue0ff]', lambda m: self.texts[ord(m.group()) - 0xE000], node.value)
        return node

def take_variable(tree):
    """Takes the list `results` out of the program and gives what it has; the first statement that assigns it is ours."""
    for at, one in enumerate(tree.body):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id == 'results':
            del tree.body[at]
            return ast.literal_eval(one.value)
    return None

def judge(code, resolved, texts, results):
    tree, other = parse(code), parse(resolved)
    if tree is None:
        return 'invalid' if other is None else 'it runs, and the planned program does not'
    if other is None:
        return 'it does not run'
    if results is not None and take_variable(other) != results:
        return 'the variable has other results'
    expected = Fill(texts).visit(parse(marked(code)))
    return 'ok' if ast.dump(expected) == ast.dump(other) else 'it says something else'

for line in sys.stdin:
    case = json.loads(line)
    if 'scan' in case:
        code = case['scan']
        try:
            valid = parse(code) is not None
            strings = [t.string for t in tokens(code) if t.type == tokenize.STRING] if valid else []
        except (tokenize.TokenError, IndentationError):
            valid, strings = False, []
        print(json.dumps({'valid': valid, 'strings': strings}))
    else:
        print(json.dumps(judge(case['code'], case['resolved'], case['texts'], case['results'])))

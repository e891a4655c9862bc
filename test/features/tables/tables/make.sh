#!/usr/bin/env bash
# Makes the files whose names begin with office- and gnumeric-: two tables, written by LibreOffice and Gnumeric under six locales.
# Needs Debian's libreoffice-calc, gnumeric, locales (the six below, by locale-gen) and python3. The tests read the committed files
# and never run this. The other files of this folder are written by hand.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- two tables as flat OpenDocument: the cells have values, and the program writes them as its locale does ----
/usr/bin/python3 - "$work" <<'PY'
import sys
from datetime import date, timedelta
NS = ' '.join(f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{u}:1.0"' for n, u in
              [('office', 'office'), ('table', 'table'), ('text', 'text'), ('number', 'datastyle'), ('style', 'style')])
def number(name, decimals, grouping):
    return f'<number:number-style style:name="{name}"><number:number number:decimal-places="{decimals}" number:min-decimal-places="{decimals}" number:min-integer-digits="1" number:grouping="{grouping}"/></number:number-style>'
STYLES = (number('money', 2, 'true') + number('whole', 0, 'false') + number('one', 1, 'false') + number('three', 3, 'false') +
  '<number:percentage-style style:name="percent"><number:number number:decimal-places="1" number:min-decimal-places="1" number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>'
  '<number:date-style style:name="day" number:automatic-order="true" number:format-source="language"><number:month number:style="long"/><number:text>/</number:text><number:day number:style="long"/><number:text>/</number:text><number:year number:style="long"/></number:date-style>'
  '<number:time-style style:name="clock"><number:hours number:style="long"/><number:text>:</number:text><number:minutes number:style="long"/><number:text>:</number:text><number:seconds number:style="long"/></number:time-style>'
  '<number:time-style style:name="span" number:truncate-on-overflow="false"><number:hours number:style="long"/><number:text>:</number:text><number:minutes number:style="long"/><number:text>:</number:text><number:seconds number:style="long"/></number:time-style>'
  '<number:boolean-style style:name="truth"><number:boolean/></number:boolean-style>' +
  ''.join(f'<style:style style:name="c-{n}" style:family="table-cell" style:data-style-name="{n}"/>' for n in ['money', 'whole', 'one', 'three', 'percent', 'day', 'clock', 'span', 'truth']))
def cell(kind, value):
    if value is None: return '<table:table-cell/>'
    if kind == 'text': return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
    what = {'day': f'date" office:date-value="{value}', 'clock': f'time" office:time-value="{value}', 'span': f'time" office:time-value="{value}',
            'truth': f'boolean" office:boolean-value="{value}', 'percent': f'percentage" office:value="{value}'}.get(kind, f'float" office:value="{value}')
    return f'<table:table-cell table:style-name="c-{kind}" office:value-type="{what}"/>'
def write(name, kinds, header, rows, above=()):
    lines = [[('text', one)] for one in above] + [[('text', one) for one in header]] + [list(zip(kinds, row)) for row in rows]
    body = ''.join('<table:table-row>' + ''.join(cell(*one) for one in line) + '</table:table-row>' for line in lines)
    open(f'{sys.argv[1]}/{name}.fods', 'w').write(
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {NS} office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">'
        f'<office:automatic-styles>{STYLES}</office:automatic-styles><office:body><office:spreadsheet><table:table table:name="{name}">{body}</table:table></office:spreadsheet></office:body></office:document>')
items = ['Äpfel', 'Birnen', 'Nüsse', 'Kirschen', 'Melonen', 'Quitten', 'Feigen', 'Trauben', 'Pflaumen', 'Oliven']
write('sales', ['text', 'text', 'whole', 'money', 'percent', 'day', 'truth'], ['Item', 'Code', 'Units', 'Price', 'Share', 'Day', 'Paid'],
      [(item, f'{70 + nth * 131:05d}', 1200 * nth - 900, round(1234.56 * nth + 0.25, 2), round(0.125 + nth / 1000, 3), date(2024, 1, 28) + timedelta(days=nth * 3), 'true' if nth % 3 else 'false')
       for nth, item in enumerate(items)])
write('readings', ['text', 'three', 'one', 'clock', 'span'], ['Sensor', 'Level', 'Exact', 'At', 'Ran'],
      [(f'S{nth}', round(0.25 + nth * 1.375, 3), 0.1 + 0.2 + nth, f'PT{nth + 6:02d}H{nth * 5:02d}M09S', f'PT{nth * 7 + 3}H30M00S') for nth in range(10)],
      ['Readings of the plant', 'Written by hand'])
PY

office() { # LOCALE FORMAT FILE: LibreOffice converts FILE under LOCALE
  local user="$work/user-${1%%.*}/user"
  mkdir -p "$user"
  cat >"$user/registrymodifications.xcu" <<XCU
<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>${1/_/-}</value></prop></item></oor:items>
XCU
  soffice --headless "-env:UserInstallation=file://${user%/user}" --convert-to "$2" --outdir "$work/out" "$3" >/dev/null 2>&1
}
for locale in en_US de_DE fr_FR de_CH en_IN sv_SE; do
  [ "$locale" = en_IN ] && full=en_IN || full="$locale.UTF-8"
  delimiter=59
  case "$locale" in en_*) delimiter=44 ;; esac
  for table in sales readings; do
    # as shown, and its values alone between tabs
    office "$locale" "csv:Text - txt - csv (StarCalc):$delimiter,34,76,1,,0,false,true" "$work/$table.fods"; mv "$work/out/$table.csv" "office-$table-$locale.csv"
    office "$locale" xlsx "$work/$table.fods"; cp "$work/out/$table.xlsx" "office-$table-$locale.xlsx"
    separator=$(printf "\\x$(printf %x "$delimiter")")
    LC_ALL=$full ssconvert -T Gnumeric_stf:stf_assistant -O "separator='$separator' format=preserve quoting-mode=auto eol=windows charset=UTF-8 locale=$full" "$work/out/$table.xlsx" "gnumeric-$table-$locale.csv" 2>/dev/null
    LC_ALL=$full ssconvert "$work/out/$table.xlsx" "gnumeric-$table-$locale.xlsx" 2>/dev/null
  done
  office "$locale" "csv:Text - txt - csv (StarCalc):9,34,65535,1,,0,false,true" "$work/sales.fods"; mv "$work/out/sales.csv" "office-sales-$locale-utf16.tsv"
  for table in sales readings; do
    LC_ALL=$full ssconvert -T Gnumeric_stf:stf_assistant -O "separator='|' format=automatic quoting-mode=auto eol=unix charset=UTF-8 locale=$full" "$work/out/$table.xlsx" "gnumeric-$table-$locale-automatic.csv" 2>/dev/null
  done
done

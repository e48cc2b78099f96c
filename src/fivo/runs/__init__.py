"""A run's directory and typed records of everything written there, without JAX.

Records have a version, a checksum and the id of their run; what is damaged or of another run is refused in a sentence.
"""

from fivo.runs._checking import FileStatus as FileStatus
from fivo.runs._checking import check_run as check_run
from fivo.runs._checkpoints import Best as Best
from fivo.runs._checkpoints import Progress as Progress
from fivo.runs._directory import CONFIG as CONFIG
from fivo.runs._directory import RunDirectory as RunDirectory
from fivo.runs._excerpt import EXCERPT as EXCERPT
from fivo.runs._excerpt import Excerpt as Excerpt
from fivo.runs._excerpt import read_excerpt as read_excerpt
from fivo.runs._excerpt import write_excerpt as write_excerpt
from fivo.runs._metrics import Row as Row
from fivo.runs._metrics import last_row as last_row
from fivo.runs._records import Alarms as Alarms
from fivo.runs._records import BoundScore as BoundScore
from fivo.runs._records import Diagnosis as Diagnosis
from fivo.runs._records import DiagnosisRow as DiagnosisRow
from fivo.runs._records import Evaluations as Evaluations
from fivo.runs._records import Forecasts as Forecasts
from fivo.runs._records import Provenance as Provenance
from fivo.runs._records import Relative as Relative
from fivo.runs._records import Reported as Reported
from fivo.runs._records import Result as Result
from fivo.runs._records import Sandwich as Sandwich
from fivo.runs._records import Score as Score
from fivo.runs._records import TableRecord as TableRecord
from fivo.runs._records import TrackRecord as TrackRecord
from fivo.runs._records import Verdict as Verdict
from fivo.runs._sealing import FORMAT as FORMAT
from fivo.runs._sealing import Record as Record
from fivo.runs._sealing import encode_record as encode_record
from fivo.runs._sealing import read_record as read_record
from fivo.runs._sealing import write_record as write_record
from fivo.runs._settings import RECORD as RECORD
from fivo.runs._summary import Summary as Summary
from fivo.runs._summary import UnreadableError as UnreadableError
from fivo.runs._summary import read_summary as read_summary
